"""Holds answers of a server against its OpenAPI document: each is of a documented route and status, has the documented media type,
and a body with nothing but documented fields, all required ones among them. Of the schemas' fields it keeps those that came, so
that a test can ask what is documented and never sent. Only what our document uses of JSON Schema."""
import json

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_a(value, kind):
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[kind])


class Described:
    def __init__(self, document):
        self.document = document
        self.problems = []
        self.came = set()

    def resolve(self, schema, where):
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.document["components"]["schemas"][name], name
        return schema, where

    def faults(self, value, schema, where, came):
        """What does not fit, as text; fields that came are put into `came`."""
        schema, where = self.resolve(schema, where)
        if "oneOf" in schema:
            tried = []
            for one in schema["oneOf"]:
                fields = set()
                tried.append(self.faults(value, one, where, fields))
                if not tried[-1]:
                    came |= fields
                    return []
            return min(tried, key=len)
        if "enum" in schema:
            return [] if value in schema["enum"] else [f"{where}: {value!r} is none of {schema['enum']}"]
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(is_a(value, kind) for kind in kinds):
            return [f"{where}: {value!r} is no {kinds}"]
        found = []
        if isinstance(value, list):
            for item in value:
                found += self.faults(item, schema.get("items", {}), where + "[]", came)
        elif isinstance(value, dict):
            properties, more = schema.get("properties", {}), schema.get("additionalProperties")
            found += [f"{where}: no {name}" for name in schema.get("required", []) if name not in value]
            for name, item in value.items():
                if name in properties:
                    came.add(f"{where}.{name}")
                    found += self.faults(item, properties[name], f"{where}.{name}", came)
                elif more:
                    found += self.faults(item, more, f"{where}.{name}", came)
                else:
                    found.append(f"{where}: {name} is not documented")
        return found

    def value(self, value, schema, what):
        self.problems += [f"{what}: {fault}" for fault in self.faults(value, schema, what, self.came)]

    def named(self, name):
        return {"$ref": f"#/components/schemas/{name}"}

    def operation(self, method, path):
        path = path.partition("?")[0]
        item = self.document["paths"].get(path)
        if item is None and path.count("/") > 1:
            item = self.document["paths"].get(path.rpartition("/")[0] + "/{id}")
        return (item or {}).get("get" if method == "HEAD" else method.lower())

    def answer(self, method, path, status, media, body):
        operation = self.operation(method, path)
        if operation is None:
            if status not in (401, 403, 404, 405, 421):
                self.problems.append(f"{method} {path} answers {status} and is not documented")
            return
        response = operation["responses"].get(str(status))
        if response is None:
            self.problems.append(f"{method} {path}: {status} is not documented: {body[:200]!r}")
            return
        if method == "HEAD" or "content" not in response:
            return
        media = (media or "").partition(";")[0]
        content = response["content"].get(media, response["content"].get(media.partition("/")[0] + "/*"))
        if content is None:
            self.problems.append(f"{method} {path}: {status} is {media}, documented are {list(response['content'])}")
        elif "schema" in content and media.endswith("json"):
            document = json.loads(body)
            self.value(document, content["schema"], f"{method} {path.partition('?')[0]} {status}")
            if media == "application/problem+json" and document["status"] != status:
                self.problems.append(f"{method} {path}: status {document['status']} in the body of a {status}")

    def never_came(self):
        """Fields of the named schemas."""
        fields = set()

        def walk(schema, where):
            for name, below in schema.get("properties", {}).items():
                fields.add(f"{where}.{name}")
                walk(below, f"{where}.{name}")
            if "items" in schema:
                walk(schema["items"], where + "[]")
        for name, schema in self.document["components"]["schemas"].items():
            walk(schema, name)
        return sorted(fields - self.came)
