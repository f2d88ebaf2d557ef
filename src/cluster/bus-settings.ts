import type { Config } from '../config/settings.ts'

/** How the bus is reached. */
export type BusSettings = Pick<Config, 'bus' | 'busName' | 'busLogin' | 'busPassword' | 'busTls'>
