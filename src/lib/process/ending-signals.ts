/** Each asks a program to end in order: Ctrl-C, a supervisor's stop, and a terminal that closes, which signals all that it runs. */
export const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
