"""Keys that tell who issued them by how they begin: one list, which `detectors` turns into patterns.

Add a line to add an issuer. What an issuer documents, or what its keys look like in practice, is a prefix, the
characters that follow and how many of them at least; a key longer than that is taken to its end.
"""

from __future__ import annotations

from typing import NamedTuple

WORD = "A-Za-z0-9"
DASHED = "A-Za-z0-9_-"
HEX = "0-9a-fA-F"


class Form(NamedTuple):
    """One issuer's keys. `prefix` is a pattern that RE2 and Python read alike."""

    type: str
    """What its placeholder is called."""
    issuer: str
    prefix: str
    body: str = WORD
    """Characters that may follow, as they stand in a character class."""
    least: int = 20
    exact: bool = False
    """Whether just as many follow, and no letter or digit after them: for prefixes that begin ordinary words."""
    tail: str = ""
    """What follows the body."""
    alone: bool = False
    """Whether nothing is joined to it from before, as in `cache-key-...`."""


FORMS: tuple[Form, ...] = (
    Form("AWS_KEY", "Amazon", "A(?:KIA|SIA|GPA|IDA|ROA)", "A-Z0-9", 16, exact=True),
    Form("GITHUB_TOKEN", "GitHub", "gh[pousr]_"),
    Form("GITHUB_TOKEN", "GitHub", "github_pat_", "A-Za-z0-9_"),
    Form("GITLAB_TOKEN", "GitLab", "gl(?:pat|dt|rt|ptt|ft|agent|oas|soat)-", DASHED, 16),
    Form("SLACK_TOKEN", "Slack", "x(?:ox[abceoprs]|app)-", "A-Za-z0-9-", 10),
    Form(
        "SLACK_TOKEN", "Slack webhook", "hooks[.]slack[.]com/(?:services|workflows|triggers)/", "A-Za-z0-9/_-"
    ),
    Form("GOOGLE_KEY", "Google", "AIza", DASHED, 30),
    Form("GOOGLE_KEY", "Google OAuth", "ya29[.]", "A-Za-z0-9._-"),
    Form("GOOGLE_KEY", "Google OAuth client", "GOCSPX-", DASHED),
    Form("STRIPE_KEY", "Stripe", "[srp]k_(?:live|test)_", WORD, 10),
    Form("STRIPE_KEY", "Stripe webhook", "whsec_", "A-Za-z0-9+/=", 16),
    Form("API_KEY", "OpenAI, Anthropic, OpenRouter, Langfuse", "[spr]k-[A-Za-z0-9]", DASHED, 15),
    Form("API_KEY", "Hugging Face", "hf_"),
    Form("API_KEY", "npm", "npm_"),
    Form("API_KEY", "LangSmith", "lsv2_[a-z]{2}_", "A-Za-z0-9_"),
    Form("API_KEY", "PyPI", "pypi-", DASHED),
    Form("API_KEY", "DigitalOcean", "do[opr]_v1_", HEX),
    Form("API_KEY", "Shopify", "shp(?:at|ca|pa|ss)_", HEX),
    Form("API_KEY", "SendGrid", "SG[.]", DASHED, 16, tail=f"[.][{DASHED}]{{16,}}"),
    Form("API_KEY", "Groq", "gsk_"),
    Form("API_KEY", "xAI", "xai-", DASHED),
    Form("API_KEY", "Replicate", "r8_"),
    Form("API_KEY", "Perplexity", "pplx-"),
    Form("API_KEY", "Tavily", "tvly-", DASHED),
    Form("API_KEY", "Fireworks", "fw_"),
    Form("API_KEY", "Cerebras", "csk-"),
    Form("API_KEY", "NVIDIA", "nvapi-", DASHED),
    Form("API_KEY", "Jina", "jina_", "A-Za-z0-9_"),
    Form("API_KEY", "Pinecone", "pcsk_", "A-Za-z0-9_"),
    Form("API_KEY", "Twilio", "SK", HEX, 32, exact=True),
    Form("API_KEY", "Notion", "ntn_"),
    Form("API_KEY", "Notion", "secret_", WORD, 32),
    Form("API_KEY", "Linear", "lin_(?:api|oauth)_"),
    Form("API_KEY", "Databricks", "dapi", HEX, 32, tail="(?:-[0-9]{1,2})?"),
    Form("API_KEY", "Vault", "hv[sbr][.]", DASHED),
    Form("API_KEY", "age", "AGE-SECRET-KEY-", "A-Z0-9"),
    Form("API_KEY", "Supabase", "sb(?:p|_secret)_", "A-Za-z0-9_"),
    Form("API_KEY", "Atlassian", "AT(?:ATT|CTT|BBT)3", "A-Za-z0-9_=-"),
    Form("API_KEY", "Docker", "dckr_(?:pat|oat)_", DASHED),
    Form("API_KEY", "Grafana", "gl(?:sa|c)_", "A-Za-z0-9_+/="),
    Form("API_KEY", "Sentry", "sntry[su]_", "A-Za-z0-9_+/="),
    Form("API_KEY", "New Relic", "NR(?:AK|II|JS)-"),
    Form("API_KEY", "Postman", "PMAK-", "A-Za-z0-9-"),
    Form("API_KEY", "Figma", "figd_", DASHED),
    Form("API_KEY", "Tailscale", "tskey-", "A-Za-z0-9-"),
    Form("API_KEY", "Resend", "re_[A-Za-z0-9]{8}_", WORD, 16),
    Form("API_KEY", "Telegram bot", "[0-9]{8,10}:", DASHED, 35, exact=True),
    Form("API_KEY", "Telegram bot in an address", "bot[0-9]{8,10}:", DASHED, 35, exact=True),
    Form("API_KEY", "Mailgun", "key-", "a-z0-9", 32, exact=True, alone=True),
    Form("API_KEY", "Heroku", "HRKU-", DASHED, 30),
    Form("API_KEY", "Airtable", "pat", WORD, 14, exact=True, tail="[.][0-9a-f]{64}"),
    Form("API_KEY", "Doppler", "dp[.](?:pt|ct|sa|st|scim|audit)[.]", "A-Za-z0-9._", 30),
    Form("API_KEY", "Pulumi", "pul-", HEX, 40, exact=True),
    Form("API_KEY", "Discord webhook", "discord(?:app)?[.]com/api/webhooks/[0-9]{1,25}/", DASHED),
    Form("API_KEY", "Teams webhook", "[.]webhook[.]office[.]com/webhookb2/", "A-Za-z0-9@/_-"),
)
