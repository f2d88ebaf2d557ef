// Bounds of the MCP server. A language model reads every character of an answer, so these are far below those of HTTP.
/** How many rows a tool answers: unless a model asks for another number, and whatever it asks for. */
export interface LimitRule {
  otherwise: number
  max: number
}
/** Rows of the market list in one answer. */
export const ROWS = { otherwise: 20, max: 100 }
/** Analyses of this agent in one answer. */
export const ANALYSES = { otherwise: 20, max: 100 }
/** Agents of the leaderboard in one answer. */
export const RANKS = { otherwise: 20, max: 200 }
/** Digits of a number that is no whole one, and at least those before the point, unless `detail` asks for all. */
export const SIGNIFICANT_DIGITS = 5
/** Characters of a text, holders and trades of a DataPoint, unless `detail` asks for all. */
export const LONG_TEXT_CHARACTERS = 200
export const HOLDERS_SHOWN = 5
export const TRADES_SHOWN = 5
/** Bars in one answer. */
export const BARS = { otherwise: 60, max: 300 }
/** Rows of a query's result, and their size as JSON; what is beyond is left out, and the answer says so. */
export const SQL_ROWS = { otherwise: 100, max: 1_000 }
export const SQL_RESULT_CHARACTERS_MAX = 256 * 1024
export const SQL_CHARACTERS_MAX = 64 * 1024
/** Time limit of a query. */
export const SQL_MS_MAX = 30_000
/** Calls that are answered at once; one more is refused. */
export const CALLS_MAX = 16
/** The largest message that is read. */
export const MESSAGE_BYTES_MAX = 1024 * 1024
/** Retries of a request to a server that is away: a model that is told of it does something else. */
export const RETRIES_MAX = 2
