"""What a span's messages say, whatever generation of names carries them.

Chat history travels in many shapes: one JSON list of messages with parts (GenAI 1.37 and later), the providers' own
lists (role, content, tool_calls; Responses items; Gemini contents), LangChain's serialised objects, flattened keys
(`gen_ai.prompt.0.content`, `llm.input_messages.0.message.content`) and span events (`gen_ai.user.message`,
`gen_ai.choice`). SQL asks only for the facts below, so one reader serves all shapes.
"""

from metrics.messages.columns import (
    CONTENT_SQL_TYPE,
    RESULT_SQL_TYPE,
    SQL_TYPE,
    event_content_column,
    plain_result_column,
    read_column,
)
from metrics.messages.facts import Facts, decision, read
from metrics.messages.results import event_content, plain_result

__all__ = [
    "CONTENT_SQL_TYPE",
    "RESULT_SQL_TYPE",
    "SQL_TYPE",
    "Facts",
    "decision",
    "event_content",
    "event_content_column",
    "plain_result",
    "plain_result_column",
    "read",
    "read_column",
]
