// Every example of the console's view of queries runs on the sample, and finds something.
import { expect, test } from 'vitest'
import { parseRoute } from '../../src/web/router.ts'
import { EXAMPLES } from '../../src/web/views/query/query-examples.ts'
import { runCommand } from '../support/terminal.ts'

test.each(EXAMPLES)('“$title” runs on the sample', async ({ sql }) => {
  const { code, out, err } = await runCommand(['sql', '--sample', sql, '--format', 'csv'])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out.trim().split('\n').length).toBeGreaterThan(1)
})

test('an address that somebody has written holds the whole query, with what it asks', () => {
  const { view, query } = parseRoute("#/query?sql=SELECT 'who?' AS a, 'what?' AS b")
  expect([view, query.get('sql')]).toEqual(['query', "SELECT 'who?' AS a, 'what?' AS b"])
  expect(parseRoute('#/token/abc?tf=5m')).toMatchObject({ view: 'token', id: 'abc' })
  expect(parseRoute('')).toMatchObject({ view: 'market', id: '' })
})
