"""The dashboard's entry point: `streamlit run dashboard/app.py`, started by `agent-slo dashboard`.

Pages join by one line here.
"""

from __future__ import annotations

import streamlit as st

from dashboard.chrome import ICON, style

st.set_page_config(page_title="agent-slo", page_icon=ICON, layout="wide")
style()

PAGES = [
    st.Page("pages/overview.py", title="Overview", icon=":material/speed:", default=True),
    st.Page("pages/tasks.py", title="Tasks", icon=":material/list:", url_path="tasks"),
    st.Page("pages/task.py", title="Task", icon=":material/timeline:", url_path="task", visibility="hidden"),
]

st.navigation(PAGES, position="top").run()
