// Every example of the console's view of queries runs on the sample, and finds something.
import { expect, test } from 'vitest'
import { EXAMPLES } from '../../src/web/views/query/query-examples.ts'
import { runCommand } from '../support/terminal.ts'

test.each(EXAMPLES)('“$title” runs on the sample', async ({ sql }) => {
  const { code, out, err } = await runCommand(['sql', '--sample', sql, '--format', 'csv'])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out.trim().split('\n').length).toBeGreaterThan(1)
})
