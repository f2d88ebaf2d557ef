import { SingleFlight } from '../../lib/single-flight.ts'
import {
  CALIBRATION_AGENTS_MIN,
  CALIBRATION_SUBMISSIONS_MIN,
  type Calibration,
  calibrationAnswerSchema,
} from '../../schema/api/calibration.ts'
import { CALIBRATION_TTL_MS } from '../limits.ts'
import type { PlainRoute } from '../route.ts'

export interface CalibrationDeps {
  /** Computes it, away from this process. One computation serves all who ask for CALIBRATION_TTL_MS. */
  calibration(): Promise<Calibration>
  /** A monotonic clock, ms. */
  nowMs(): number
}

export function calibrationRoute(deps: CalibrationDeps): PlainRoute {
  const calibration = new SingleFlight(
    () => deps.calibration(),
    CALIBRATION_TTL_MS,
    () => deps.nowMs(),
  )
  return {
    method: 'GET',
    path: '/api/v1/calibration',
    access: 'read',
    summary: 'Sentiments and scores against what the price did afterwards',
    docs: {
      operationId: 'getCalibration',
      tag: 'analysis',
      description:
        'Mean returns after accepted submissions whose labels anybody may see, with 95 % intervals. A token counts once in each group. ' +
        `Groups of fewer than ${CALIBRATION_SUBMISSIONS_MIN} submissions or ${CALIBRATION_AGENTS_MIN} agents are left out. Computed once a minute.`,
      answers: {
        200: {
          description: 'Groups by sentiment and by score',
          content: { 'application/json': calibrationAnswerSchema },
        },
      },
      errors: ['store_unavailable'],
    },
    handle: async () => ({ status: 200, body: { ok: true, data: await calibration.get() } }),
  }
}
