// Examples that the API description and /skill.md show. A schema holds its own; a test holds each to its schema.
import { z } from 'zod'

/** The same schema with an example. */
export const withExample = <Schema extends z.ZodType>(schema: Schema, example: unknown): Schema =>
  schema.meta({ examples: [example] })

/** The example that a schema was given. */
export function exampleOf<Schema extends z.core.$ZodType>(schema: Schema): z.input<Schema> {
  const examples = z.globalRegistry.get(schema)?.examples as readonly z.input<Schema>[] | undefined
  return examples?.[0] as z.input<Schema>
}

/** A token that the examples are about: the mint of wrapped SOL. */
export const EXAMPLE_MINT = 'So11111111111111111111111111111111111111112'
export const EXAMPLE_TOKEN = {
  mint: EXAMPLE_MINT,
  name: 'Soggy Narwhal',
  symbol: 'NARWHAL',
  description: 'Simulated token, not a real asset.',
  creator: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
  website: null,
  twitter: null,
  telegram: null,
}
export const EXAMPLE_AGENT_ID = 'ag_01K3ZC0M7Q8R9S0T1V2W3X4Y5Z'
export const EXAMPLE_TIME_MS = 1_772_000_000_000
