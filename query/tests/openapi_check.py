"""Checks an OpenAPI description and real replies against it; run by the test `openapi`.

Standard input: {"document": .., "replies": [{"path", "method", "status", "kind", "body"}, ..]}.
Exit 1 and one line for each fault. Keys that the description does not name are faults, too.
"""

import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator


def closed(schema):
    """The same with no key that is not described."""
    if isinstance(schema, list):
        return [closed(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    return schema


def main():
    given = json.load(sys.stdin)
    document = given["document"]
    faults = [f"description: {e.message}" for e in OpenAPIV31SpecValidator(document).iter_errors()]
    components = closed(document["components"])
    for reply in given["replies"]:
        name = f"{reply['method']} {reply['path']} {reply['status']}"
        operation = document["paths"].get(reply["path"], {}).get(reply["method"])
        response = (operation or {}).get("responses", {}).get(str(reply["status"]))
        if response is None:
            faults.append(f"{name}: not described: {str(reply['body'])[:200]}")
            continue
        kinds = {kind.split(";")[0]: media for kind, media in response.get("content", {}).items()}
        if reply["kind"] not in kinds:
            faults.append(f"{name}: {reply['kind']} is not among {sorted(kinds)}")
            continue
        if reply["kind"] != "application/json":
            continue
        body = json.loads(reply["body"])
        schema = {"allOf": [closed(kinds[reply["kind"]]["schema"])], "components": components}
        for error in Draft202012Validator(schema).iter_errors(body):
            faults.append(f"{name}: {error.json_path}: {error.message[:400]}")
        code = (body.get("error") or {}).get("code") if isinstance(body, dict) else None
        if code and reply["status"] >= 400 and f"`{code}`" not in response["description"]:
            faults.append(f"{name}: `{code}` is not named")
    print("\n".join(faults))
    sys.exit(bool(faults))


main()
