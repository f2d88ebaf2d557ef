// Types of program.mjs for the scripts in TypeScript.
export const isPackage: boolean
export const SERVER_FLAGS: readonly string[]
export function programUrl(name: string): string
