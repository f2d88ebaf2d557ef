// Runs before each file of tests (.vitest.config.ts).
import { afterEach } from 'vitest'
import { checkPending } from './pending-checks.ts'

afterEach(checkPending)
