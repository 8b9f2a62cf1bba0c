"""The dashboard's entry point: `streamlit run dashboard/app.py`, started by `agent-slo dashboard`.

Pages join by one line here. They lie in `screens/` because Streamlit takes a folder named `pages` beside this
file for its older kind of navigation, and a fresh server then opens a deep link such as /task?id=... past
this file.
"""

from __future__ import annotations

import streamlit as st

from dashboard.chrome import ICON, style

st.set_page_config(page_title="agent-slo", page_icon=ICON, layout="wide")
style()

PAGES = [
    st.Page("screens/overview.py", title="Overview", icon=":material/speed:", default=True),
    st.Page("screens/tasks.py", title="Tasks", icon=":material/list:", url_path="tasks"),
    st.Page("screens/incidents.py", title="Incidents", icon=":material/report:", url_path="incidents"),
    st.Page("screens/alerts.py", title="Alerts", icon=":material/notifications:", url_path="alerts"),
    st.Page("screens/actions.py", title="Actions", icon=":material/repeat:", url_path="actions"),
    st.Page("screens/humans.py", title="Humans", icon=":material/person:", url_path="humans"),
    st.Page("screens/cost.py", title="Cost and latency", icon=":material/payments:", url_path="cost"),
    st.Page("screens/data.py", title="Data", icon=":material/database:", url_path="data"),
    st.Page(
        "screens/objective.py",
        title="Objective",
        icon=":material/flag:",
        url_path="objective",
        visibility="hidden",
    ),
    st.Page(
        "screens/task.py", title="Task", icon=":material/timeline:", url_path="task", visibility="hidden"
    ),
]

st.navigation(PAGES, position="top").run()
