// The part of the API description that is about one path: 150 000 tokens are more than a language model should read for it.

type Json = null | string | number | boolean | readonly Json[] | { readonly [name: string]: Json }
type Members = { readonly [name: string]: Json }
/** As far as it is read here. */
export interface Description {
  paths: Members
  components: { schemas: Members; [kind: string]: Json }
  tags: readonly { name: string }[]
  [member: string]: unknown
}

const SCHEMA = '#/components/schemas/'

/** Adds the names of the schemas that a value refers to, and of those that these refer to. */
function collectSchemas(value: Json, schemas: Members, found: Set<string>): void {
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    const schema =
      name === '$ref' && typeof member === 'string' && member.startsWith(SCHEMA)
        ? member.slice(SCHEMA.length)
        : null
    if (schema === null) collectSchemas(member, schemas, found)
    else if (!found.has(schema)) {
      found.add(schema)
      collectSchemas(schemas[schema] ?? null, schemas, found)
    }
  }
}

/** The description with one of its paths alone, and the schemas that it needs. */
export function describePath(description: Description, path: string): object {
  const { paths, components, tags } = description
  const item = paths[path] ?? {}
  const found = new Set<string>()
  collectSchemas(item, components.schemas, found)
  const schemas = Object.entries(components.schemas).filter(([name]) => found.has(name))
  const used = Object.values(item).flatMap(({ tags: named }: { tags?: string[] }) => named ?? [])
  return {
    ...description,
    tags: tags.filter(({ name }) => used.includes(name)),
    paths: { [path]: item },
    components: { ...components, schemas: Object.fromEntries(schemas) },
  }
}
