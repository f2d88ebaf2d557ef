/** Variables that clients read: the agents of README, programs of a backtest, and the commands that ask a server. The server has no use for them. */
export const CLIENT_ENV = { url: 'MINTLAKE_URL', key: 'MINTLAKE_KEY' } as const
