#!/usr/bin/env python3
"""Drive every MCP tool, resource and prompt of runbook-query with the official Python SDK.

usage: mcp-client.py stdio COMMAND [ARG...] | mcp-client.py http URL

Over each transport twice: with the handshake of 2025-11-25, and without one, as 2026-07-28 has it.
Exit status 0 when all holds, 1 otherwise. The corpus is runbooks-sample.
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

TOOLS = {
    "ask", "search", "cite", "shell", "read", "grep", "list", "find", "write", "edit", "delete", "history",
}
READS = TOOLS - {"shell", "write", "edit", "delete"}
checks = 0


def check(holds, what):
    global checks
    checks += 1
    if not holds:
        raise AssertionError(what)


def text_of(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


def tokens(result):
    """A low estimate of what a client counts: three characters a token."""
    structured = len(str(result.structured_content or ""))
    return (len(text_of(result)) + structured) / 3


class Agent:
    """A client that passes on the session which results name, where its connection has none."""

    def __init__(self, client):
        self.client = client
        self.session = None
        self.called = set()

    async def call(self, tool, fails=False, **arguments):
        if self.session:
            arguments.setdefault("session", self.session)
        result = await self.client.call_tool(tool, arguments)
        self.called.add(tool)
        check(bool(result.is_error) == fails, f"{tool} {arguments}: {text_of(result)[:400]}")
        structured = result.structured_content or {}
        check(bool(text_of(result)), f"{tool}: no text")
        check(tokens(result) < 25_000, f"{tool}: {tokens(result)} tokens")
        if not fails:
            check(structured.get("session"), f"{tool}: no session in {structured}")
            self.session = structured["session"]
        return structured, text_of(result)


async def offers(client):
    listed = await client.list_tools()
    names = {tool.name for tool in listed.tools}
    check(names == TOOLS, f"tools: {names ^ TOOLS}")
    for tool in listed.tools:
        schema = tool.input_schema
        check(schema["type"] == "object" and schema["additionalProperties"] is False, tool.name)
        plain = all(isinstance(p.get("type"), str) for p in schema["properties"].values())
        check(plain and not any(k in str(schema) for k in ("anyOf", "oneOf", "$ref")), tool.name)
        check(tool.description and tool.annotations, tool.name)
        check(tool.annotations.read_only_hint == (tool.name in READS), f"{tool.name}: read only")
        check(tool.annotations.open_world_hint is False, f"{tool.name}: closed world")
        check(tool.annotations.idempotent_hint is not None, f"{tool.name}: idempotent")


async def tools(agent):
    structured, text = await agent.call("search", question="how does staging differ from production")
    check(structured.get("steered") is True, f"a search before any look: {structured}")
    check("grep" in text, text)
    structured, _ = await agent.call("ask", question="what is the staging hostname")
    check(structured["band"] == "answer" and structured["citations"], structured)
    structured, _ = await agent.call("ask", question="what is the capital of Peru")
    check(structured["answer"] == "I do not know" and not structured["citations"], structured)
    structured, text = await agent.call("list", path="/")
    check("runbooks" in text and "tmp" in text, text)
    structured, text = await agent.call("list", depth=2)
    check("staging.md" in text, text)
    structured, text = await agent.call("grep", pattern="staging.harbor.example", syntax="fixed", files_only=True)
    check("/runbooks/deploy/staging.md" in text, text)
    structured, text = await agent.call("find", name="*staging*")
    check("deploy/staging.md" in text, text)
    structured, text = await agent.call("read", path="/runbooks/deploy/staging.md", lines="1-6")
    check("# Staging" in text and structured["sources"], text)
    structured, _ = await agent.call("search", question="how does staging differ from production", k=3)
    check(len(structured["results"]) == 3, structured)
    structured, text = await agent.call("shell", command="grep -rl staging /runbooks | sort | head -3")
    check(structured["exit_code"] == 0 and text.count("\n") <= 4, text)
    structured, text = await agent.call("cite", answer="Staging is https://staging.harbor.example.")
    check(structured["verdict"] == "supported" and structured["citations"], structured)
    structured, text = await agent.call("cite", answer="Run `staging-ctl promote --now` on port 9999.")
    check(structured["verdict"] == "unsupported", structured)
    check({"staging-ctl", "9999"} <= {u["token"] for u in structured["unsupported"]}, structured)
    await agent.call("write", path="/artifacts/check/notes.md", content="one\ntwo\n")
    await agent.call("edit", path="/artifacts/check/notes.md", old="two", new="three")
    structured, text = await agent.call("read", path="/artifacts/check/notes.md")
    check("three" in text and "two" not in text, text)
    structured, text = await agent.call("history", path="/artifacts/check/notes.md")
    check(len([line for line in text.splitlines() if line.strip()]) >= 2, text)
    await agent.call("delete", path="/artifacts/check/notes.md")
    await agent.call("read", fails=True, path="/artifacts/check/notes.md")
    check(agent.called == TOOLS, f"not called: {TOOLS - agent.called}")


async def errors(agent):
    _, text = await agent.call("ask", fails=True, qurey="x")
    check("question (required)" in text, text)
    _, text = await agent.call("ask", fails=True)
    check("needs `question`" in text, text)
    _, text = await agent.call("grep", fails=True, pattern="x", syntax="perl")
    check("one of fixed" in text, text)
    _, text = await agent.call("write", fails=True, path="/runbooks/new.md", content="x")
    check("read" in text.lower(), text)
    await agent.call("read", fails=True, path="/etc/passwd")
    await agent.call("read", fails=True, path="/runbooks/../../etc/passwd")
    try:
        await agent.client.call_tool("nope", {})
        check(False, "a tool that is not there")
    except MCPError:
        pass


async def long_results(agent):
    word = "All work and no play. "
    await agent.call("write", path="/tmp/long.txt", content="".join(f"{n} {word * 4}\n" for n in range(4000)))
    structured, text = await agent.call("read", path="/tmp/long.txt")
    check(structured["truncated"] and structured["overflow"]["path"].startswith("/tmp/"), structured.keys())
    check(structured["overflow"]["path"] in text, text[-300:])
    structured, text = await agent.call("read", path=structured["overflow"]["path"], lines="2000-2003")
    check("1999 All work" in text, text)


async def the_rest(agent):
    client = agent.client
    resources = await client.list_resources()
    uris = [r.uri for r in resources.resources]
    check("runbook:///runbooks/deploy/staging.md" in uris, uris[:3])
    read = await client.read_resource("runbook:///runbooks/deploy/staging.md")
    check("# Staging" in read.contents[0].text, "resource text")
    read = await client.read_resource("runbook:///runbooks/deploy/staging.md?lines=1-1")
    check(read.contents[0].text.strip() == "# Staging", read.contents[0].text)
    for uri in ("runbook:///etc/passwd", "file:///etc/passwd", "runbook:///runbooks/%2e%2e/%2e%2e/etc/passwd"):
        try:
            await client.read_resource(uri)
            check(False, f"{uri} was read")
        except MCPError:
            pass
    templates = (await client.list_resource_templates()).resource_templates
    check(templates[0].uri_template.startswith("runbook:///"), templates)
    prompts = (await client.list_prompts()).prompts
    check([p.name for p in prompts] == ["incident"], prompts)
    prompt = await client.get_prompt("incident", {"alert": "PgReplicationLag on db1", "area": "database"})
    check("PgReplicationLag" in prompt.messages[0].content.text, prompt)
    try:
        await client.get_prompt("incident", {})
        check(False, "a prompt without its argument")
    except MCPError:
        pass
    reference = ResourceTemplateReference(type="ref/resource", uri=templates[0].uri_template)
    done = await client.complete(reference, {"name": "path", "value": "runbooks/deploy/sta"})
    check(done.completion.values == ["runbooks/deploy/staging.md"], done)
    done = await client.complete(PromptReference(type="ref/prompt", name="incident"), {"name": "area", "value": "mon"})
    check(done.completion.values == ["monitoring"], done)


async def told(agent):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, message))

    arguments = {"question": "what is the staging hostname"}
    await agent.client.call_tool("ask", arguments, progress_callback=hear)
    check(heard and all(message for _, message in heard), f"progress: {heard}")


async def drive(server, mode):
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        check(client.server_info.name == "runbook-ask", client.server_info)
        said = client.instructions or ""
        check("/runbooks" in said and "document" in said and "cite" in said, said)
        agent = Agent(client)
        await offers(client)
        await tools(agent)
        await errors(agent)
        await long_results(agent)
        await the_rest(agent)
        await told(agent)
        return client.protocol_version


async def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("stdio", "http"):
        print(__doc__, file=sys.stderr)
        return 2
    for mode in ("legacy", "auto"):
        server = sys.argv[2]
        if sys.argv[1] == "stdio":
            server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])
        before = checks
        version = await drive(server, mode)
        print(f"mcp {sys.argv[1]} {version}: {checks - before} checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
