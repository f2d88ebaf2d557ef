// A repeated fault is logged at a limited rate.
import { expect, test } from 'vitest'
import { FaultLog } from '../../src/store/fault-log.ts'
import { clockOf } from '../support/clock.ts'

test('a fault is logged when it begins, once a minute while it lasts, and when it is over', () => {
  const lines: string[] = []
  const line = (fields: Record<string, unknown>, message: string) =>
    void lines.push(`${message} ${JSON.stringify(fields)}`)
  let ms = 0
  const faults = new FaultLog(
    { info: line, warn: line, error: line },
    clockOf(() => ms),
  )
  // Four times a second for two minutes and a half.
  for (let i = 0; i < 600; i++, ms += 250) faults.report('the lake is stuck', 'Error: no room')
  expect(lines).toEqual([
    'the lake is stuck {"error":"Error: no room"}',
    'the lake is stuck {"error":"Error: no room","times":241}',
    'the lake is stuck {"error":"Error: no room","times":481}',
  ])
  expect(faults.current).toEqual(['the lake is stuck (since 1970-01-01T00:00:00.000Z: Error: no room)'])
  faults.clear('the lake is stuck')
  faults.clear('the lake is stuck')
  expect(lines.slice(3)).toEqual(['over: the lake is stuck {"times":600,"forMs":150000}'])
  expect(faults.current).toEqual([])
})
