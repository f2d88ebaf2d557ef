import { lazyPackage } from '../../lib/lazy-package.ts'

/** Loaded for the first answer that is an Arrow stream. */
export const arrow = lazyPackage<typeof import('apache-arrow')>('apache-arrow')
