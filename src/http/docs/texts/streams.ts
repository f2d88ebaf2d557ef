// /streams.md: what goes over streams. Each of its examples is run by a test, which replaces MINT and SEQ.

import { BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX } from '../../../schema/api/bars.ts'
import { MARKET_LIMIT_DEFAULT, MINTS_FILTERED_MAX } from '../../../schema/api/market.ts'
import { BYE_REASONS, CHANGES_KEPT_MINUTES, STREAM_PROTOCOLS } from '../../../schema/api/stream.ts'
import {
  FOLLOW_AGE_MS_MAX,
  FOLLOW_HEARTBEAT_MS,
  FOLLOW_ROWS_MAX,
  FOLLOW_STALLED_MS_MAX,
  FOLLOWERS_MAX,
  SOCKET_BACKPRESSURE_BYTES_MAX,
  SOCKET_IDLE_SECONDS_MAX,
  STREAM_MESSAGE_BYTES_MAX,
  SUBMISSIONS_SNAPSHOT_ROWS,
  SUBMISSIONS_STREAMED_MAX,
  SUBSCRIPTIONS_MAX,
  WINDOW_EVERY_MS,
  WINDOW_ROWS_MAX,
  WINDOWS_MAX,
  WINDOWS_OF_CLIENT_MAX,
} from '../../limits.ts'

/** Messages as they are in the examples: rows are shortened to a few fields. */
const ROW = '"mint":"MINT","symbol":"NARWHAL","priceUsd":0.00015'
const CHANGED = '"mint":"MINT","symbol":"NARWHAL","priceUsd":0.00016'
const BAR = '"t":1772000000000,"o":0.00015,"h":0.00016,"l":0.00015,"c":0.00016,"v":0.31,"n":2,"closed":false'
const [DRAINING, SLOW_CONSUMER, MAX_AGE, BEHIND, OVERLOADED] = BYE_REASONS

const example = (...lines: string[]): string => ['```text', ...lines, '```'].join('\n')

/** @param base what links begin with, without a slash at the end. */
export const streamsText = (base: string): string =>
  [introduction(base), overHttp(base), windows(base), overWebSocket(base), BOUNDS].join('\n')

const introduction = (base: string): string => `# Streams

A stream sends changes of the market as they happen, over an open HTTP response or over a WebSocket. In the examples a line with
\`>\` is sent by the client and one with \`<\` by the server; \`#\` says what happens in between. Rows are shortened, MINT is a mint
and SEQ a position. Schemas: StreamLine, StreamRequest and StreamMessage in ${base}/openapi.json.

## Positions

Every change of the market has a position, \`seq\`. It rises for ever, across restarts of the server too. A client that has been
sent a \`seq\` has been sent every change up to it, and resumes with \`since=<seq>\`. A position that is too old (at least
${CHANGES_KEPT_MINUTES} minutes are kept), of an earlier run, or from the future is answered by \`resync\`: all rows follow
again, and rows that the client has and that are not among them are gone. Several changes of one row are sent as one, at its newest.
`

const overHttp = (base: string): string => `## Lines over HTTP

\`GET ${base}/api/v1/market?format=ndjson&follow=1\`, with \`tab\`, \`sort\`, \`order\`, \`limit\`, \`offset\` for the first rows (${MARKET_LIMIT_DEFAULT} unless told), and \`fields\` for
what rows have. One JSON object a line. A line without \`event\` is a row of the list. First come the rows as they are, without \`seq\`, ended by a
\`heartbeat\`, then each row of the tab that changes, with \`seq\`. A row that leaves the tab is sent once more, as it is then. Time alone sends no row: the
\`volume_24h_usd\` of one that is not traded any more is that of when it was sent. A window sends it.

${example(
  'GET /api/v1/market?format=ndjson&follow=1&limit=1',
  `< {${ROW}}`,
  '< {"event":"heartbeat","seq":7127000123,"ts":1772000000000}',
  '# a trade',
  `< {${CHANGED},"seq":7127000124}`,
)}

With \`since\` there are no first rows: a \`heartbeat\` confirms the position, and what has changed after it follows.

${example(
  'GET /api/v1/market?format=ndjson&follow=1&since=SEQ',
  '< {"event":"heartbeat","seq":7127000124,"ts":1772000000000}',
  '# a trade',
  `< {${ROW},"seq":7127000125}`,
)}

A position that cannot be resumed:

${example(
  'GET /api/v1/market?format=ndjson&follow=1&since=1',
  '< {"event":"resync"}',
  `< {${ROW}}`,
  '< {"event":"heartbeat","seq":7127000125,"ts":1772000000000}',
)}

| Line | Meaning |
| --- | --- |
| a row, \`seq\`? | a token as it is now |
| \`heartbeat\`, \`seq\`?, \`ts\` | every ${FOLLOW_HEARTBEAT_MS / 1_000} s, and after first rows. \`ts\` is market time; \`seq\` is absent while rows are still to come |
| \`window\`, \`seq\`, \`ts\`, \`offset\`, \`total\`, \`order\`? | where a [window](#windows-the-rows-in-sight-or-a-set-of-tokens) is |
| \`left\`, \`mint\`, \`seq\` | the market no longer holds this token |
| \`resync\` | changes were missed: all rows follow, then a \`heartbeat\` |
| \`gap\`, \`from\`, \`to\`, \`reason\`, \`feed\`, \`ts\` | a gap began (\`to\` is null) or ended: events of that interval may be missing. \`reason\` is \`disconnect\` (a feed had lost its source), \`downtime\`, \`leap\` (the server’s clock leapt over it) or \`lost\`; a null \`feed\` is any. With \`healUntil\` the feed brings what is missing by that time: rows change as it does, and bars of the gap stay open. Then a line with \`healed: true\` says that the interval is no gap; parts that stay missing follow as gaps with \`reason\` \`budget\`, \`too_long\`, \`pruned\` or \`refused\`. A gap told again with a null \`to\` goes on as told last. A stream begins with the gaps that go on, and one with \`since\` goes on with those that ended since, each once however many channels are resumed, of the latest 64 changes since the server's start, and then again with those that go on (\`meta.incomplete\` of bars has all) |
| \`bye\`, \`reason\`, \`seq\`?, \`retryAfterMs\`? | the last line: \`${DRAINING}\` (the server stops), \`${SLOW_CONSUMER}\`, \`${MAX_AGE}\`, \`${BEHIND}\` (this node of a cluster does not keep up), \`${OVERLOADED}\` (the server has more to do than it can: wait \`retryAfterMs\` first). Connect again with \`since\` |

A response that ends without \`bye\` was cut: connect again with the last \`seq\`. Ignore lines with an \`event\` that you do not know.
Let the library ask for gzip, as most do by themselves: urllib3, and so Python’s requests, hands out the last line of a stream that
is not compressed only when the next one comes.

${example(
  'GET /api/v1/market?format=ndjson&follow=1&since=SEQ',
  '# a feed loses its source',
  '< {"event":"gap","from":1772000000000,"to":null,"reason":"disconnect","feed":"pumpportal","ts":1772000001000}',
  '# the feed has it again',
  '< {"event":"gap","from":1772000000000,"to":1772000060000,"reason":"disconnect","feed":"pumpportal","ts":1772000060000}',
  '# a feed that heals loses its source',
  '< {"event":"gap","from":1772000100000,"to":null,"reason":"disconnect","feed":"solana","healUntil":1772000700000,"ts":1772000104000}',
  '# it has brought what it missed, but for the last ten seconds',
  '< {"event":"gap","from":1772000100000,"to":1772000160000,"reason":"disconnect","feed":"solana","healed":true,"ts":1772000160000}',
  '< {"event":"gap","from":1772000150000,"to":1772000160000,"reason":"budget","feed":"solana","ts":1772000160000}',
)}

${example(
  'GET /api/v1/market?format=ndjson&follow=1&since=SEQ',
  '# the token is evicted',
  '< {"event":"left","mint":"MINT","seq":7127000126}',
)}

${example(
  'GET /api/v1/market?format=ndjson&follow=1&since=SEQ',
  '# the server stops',
  `< {"event":"bye","reason":"${DRAINING}","seq":7127000126}`,
)}
`

const windows = (base: string): string => `## Windows: the rows in sight, or a set of tokens

A stream of a tab tells every change of every row. Who shows a part of a list, or watches a few tokens, follows a window instead:
\`GET ${base}/api/v1/market?format=ndjson&follow=window\`, or the topic \`window\` on the WebSocket. Its parameters are those of a page:
\`tab\`, \`sort\`, \`order\`, \`offset\`, \`limit\` (at most ${WINDOW_ROWS_MAX} rows), \`search\`, \`max_analyses\`, \`min_…\` and \`max_…\` of every figure, \`fields\`, and
\`mints\` for a set of up to ${MINTS_FILTERED_MAX} tokens (with commas between; on the WebSocket an array will do, also an empty one), of which each is in the window while the
market holds it. There is no \`since\`: after a break ask again, and the window is sent again.

${example(
  'GET /api/v1/market?format=ndjson&follow=window&sort=volume_24h&limit=1&fields=symbol,priceUsd',
  `< {${ROW}}`,
  '< {"event":"window","seq":7127000123,"ts":1772000000000,"offset":0,"total":1,"order":["MINT"]}',
  '# a trade',
  `< {${CHANGED}}`,
  '< {"event":"window","seq":7127000124,"ts":1772000001000,"offset":0,"total":1}',
)}

Keep the rows by \`mint\`. A row takes the place of the one before; the line \`window\` ends what belongs together. Its \`order\` lists the
mints of the window from top to bottom, and stands there whenever they are others than before: rows that are not among them are
gone, and those that are new have come just before. \`total\` is the length of the whole list. At \`seq\` the list is what a page with the
same parameters would show.

A window is looked at once a second, and nothing is sent where nothing has changed: a row that changes a hundred times meanwhile
is sent once, and with \`fields\` only when one of these has changed. A client that reads slowly gets the whole window when it reads again.
`

const WINDOW = 'window:0_AC7jnY_Khs9yd3'

const overWebSocket = (base: string): string => `## Messages over a WebSocket

\`GET ${base}/api/v1/stream\`, as a WebSocket. Protocols (\`Sec-WebSocket-Protocol\`): ${STREAM_PROTOCOLS.map((name) => `\`${name}\``).join(' and ')}; JSON in text
messages without one. With \`mintlake.msgpack\` the server sends the same objects as msgpack in binary messages, with whole numbers of more than 32 bits (times) as float64. A client may
send either: text is JSON, binary is msgpack. A key goes into the handshake, as \`Authorization\` or \`X-API-Key\`.

Each message of the client has \`op\`: \`subscribe\`, \`unsubscribe\` or \`ping\`. An \`id\` comes back in the reply. What
had no effect is told by \`subscribed\`: names in \`ignored\`, a \`limit\` above its maximum in \`clamped\`. The topics:

**market**: rows of a \`tab\`; with \`sort\`, \`order\`, \`limit\`, \`offset\` for the first ones. A snapshot of many rows comes in
messages of up to ${FOLLOW_ROWS_MAX} rows, of which the one with \`last\` has the position.

${example(
  '> {"op":"subscribe","topic":"market","tab":"all","limit":1,"id":"1"}',
  '< {"event":"subscribed","id":"1","channel":"market:all"}',
  `< {"event":"snapshot","channel":"market:all","seq":7127000123,"last":true,"rows":[{${ROW}}]}`,
  '# a trade',
  `< {"event":"changes","channel":"market:all","seq":7127000124,"rows":[{${CHANGED},"seq":7127000124}]}`,
)}

**window**: see [Windows](#windows-the-rows-in-sight-or-a-set-of-tokens). Several may be followed at once; \`channel\` names each, and
\`unsubscribe\` may name it too. Rows of a large window come in several messages, of which the one with \`seq\` is the last.

${example(
  '> {"op":"subscribe","topic":"window","sort":"volume_24h","limit":1,"fields":["symbol","priceUsd"],"id":"1"}',
  `< {"event":"subscribed","id":"1","channel":"${WINDOW}"}`,
  `< {"event":"window","channel":"${WINDOW}","seq":7127000123,"ts":1772000000000,"offset":0,"total":1,"order":["MINT"],"rows":[{${ROW}}]}`,
  '# a trade',
  `< {"event":"window","channel":"${WINDOW}","seq":7127000124,"ts":1772000001000,"offset":0,"total":1,"rows":[{${CHANGED}}]}`,
  `> {"op":"unsubscribe","channel":"${WINDOW}"}`,
  `< {"event":"unsubscribed","channel":"${WINDOW}"}`,
)}

**token**: the DataPoint of a \`mint\`, at each change of its row.

${example(
  '> {"op":"subscribe","topic":"token","mint":"MINT"}',
  '< {"event":"subscribed","channel":"token:MINT"}',
  '< {"event":"snapshot","channel":"token:MINT","seq":7127000123,"last":true,"rows":[{"mint":"MINT","priceUsd":0.00015}]}',
  '# a trade',
  '< {"event":"changes","channel":"token:MINT","seq":7127000124,"rows":[{"mint":"MINT","priceUsd":0.00016}]}',
)}

**ohlc**: bars of a \`mint\` in a timeframe \`tf\` (\`1m\` unless told): first the newest \`limit\` of them (${BARS_LIMIT_DEFAULT} unless told, ${BARS_LIMIT_MAX} at
most), or of those that start at \`from\` or later (${BARS_LIMIT_MAX} unless told); then each bar that has changed, is closed or is new,
also one between others: a trade may come late, or a feed bring it as it heals; then of the newest ${BARS_LIMIT_MAX}. To resume, subscribe with \`from\` set to
that of the last message: bars that start there or later may have changed since. Where \`limit\` leaves out bars since \`from\`, \`subscribed\` has
\`clamped\` with it: read those from \`/api/v1/ohlc\`. Where bars since \`from\` are not held any more, or without it fewer than
\`limit\` are, it has \`heldFrom\`: from then on they are held, and those of 1m and longer before it are in the lake, for as long as its operator keeps them.

${example(
  '> {"op":"subscribe","topic":"ohlc","mint":"MINT","tf":"1h","limit":1}',
  '< {"event":"subscribed","channel":"ohlc:MINT:1h"}',
  `< {"event":"snapshot","channel":"ohlc:MINT:1h","seq":7127000123,"from":1772000000000,"last":true,"rows":[{${BAR}}]}`,
  '# a trade',
  `< {"event":"changes","channel":"ohlc:MINT:1h","seq":7127000124,"from":1772000000000,"rows":[{${BAR}}]}`,
)}

**submissions**: every submission the moment it is durable, accepted or rejected, with its verdict and without its labels. First the
latest ${SUBMISSIONS_SNAPSHOT_ROWS} of this run of the server. After \`since\` one that is known may come again: tell them apart by \`analysisId\`.
The latest ${SUBMISSIONS_STREAMED_MAX} are kept: whoever missed more gets \`resync\` and the latest ${SUBMISSIONS_SNAPSHOT_ROWS}; the list \`/api/v1/analysis\` has the others.

${example(
  '> {"op":"subscribe","topic":"submissions"}',
  '< {"event":"subscribed","channel":"submissions"}',
  '< {"event":"snapshot","channel":"submissions","seq":7127000123,"last":true,"rows":[]}',
  '# an agent submits',
  '< {"event":"changes","channel":"submissions","seq":7127000124,"rows":[{"mint":"MINT","outcome":"validated","xpEarned":50}]}',
)}

Resuming a tab or a token; a position that cannot be resumed gets \`resync\` and a snapshot of all rows:

${example(
  '> {"op":"subscribe","topic":"market","tab":"all","since":SEQ}',
  '< {"event":"subscribed","channel":"market:all","seq":7127000124}',
  '# a trade',
  `< {"event":"changes","channel":"market:all","seq":7127000125,"rows":[{${ROW},"seq":7127000125}]}`,
)}

${example(
  '> {"op":"subscribe","topic":"market","tab":"all","since":1}',
  '< {"event":"subscribed","channel":"market:all"}',
  '< {"event":"resync","channel":"market:all"}',
  `< {"event":"snapshot","channel":"market:all","seq":7127000125,"last":true,"rows":[{${ROW}}]}`,
)}

A \`ping\` tells up to where all subscriptions have been served; \`unsubscribe\` names the topic as \`subscribe\` did; a message that is
refused gets \`error\`, with the members of every error, and the socket stays open:

${example(
  '> {"op":"subscribe","topic":"token","mint":"MINT"}',
  '< {"event":"subscribed","channel":"token:MINT"}',
  '< {"event":"snapshot","channel":"token:MINT","seq":7127000125,"last":true,"rows":[{"mint":"MINT"}]}',
  '> {"op":"ping","id":"2"}',
  '< {"event":"pong","id":"2","seq":7127000125,"ts":1772000000000}',
  '> {"op":"unsubscribe","topic":"token","mint":"MINT","id":"3"}',
  '< {"event":"unsubscribed","id":"3","channel":"token:MINT"}',
  '> {"op":"subscribe","topic":"weather","id":"4"}',
  '< {"event":"error","id":"4","ok":false,"code":"invalid_parameter","status":400,"errors":[{"pointer":"/topic"}]}',
)}

${example(
  '> {"op":"subscribe","topic":"token","mint":"MINT"}',
  '< {"event":"subscribed","channel":"token:MINT"}',
  '# the token is evicted',
  '< {"event":"left","channel":"token:MINT","mint":"MINT","seq":7127000126}',
)}

${example(
  '> {"op":"ping"}',
  '< {"event":"pong","ts":1772000000000}',
  '# a feed loses its source',
  '< {"event":"gap","from":1772000000000,"to":null,"reason":"disconnect","feed":"pumpportal","ts":1772000001000}',
  '# the server stops',
  `< {"event":"bye","reason":"${DRAINING}"}`,
)}

\`heartbeat\`, \`gap\` and \`bye\` are as over HTTP. After \`bye\` the socket is closed: with 1001 for \`${DRAINING}\`, 1008 for \`${SLOW_CONSUMER}\`, 1000 for \`${MAX_AGE}\`, 1013 for \`${BEHIND}\` and \`${OVERLOADED}\`.
`

const BOUNDS = `## Bounds

| What | Bound |
| --- | --- |
| Reads | a stream counts as one read; on a WebSocket the first subscription to each of up to ${SUBSCRIPTIONS_MAX} channels is free, further ones are reads |
| Rows | first rows count against the rows that a client may read |
| Streams at once | ${FOLLOWERS_MAX} for all clients; one more is 429 \`read_rate_limited\` |
| Windows | ${WINDOW_ROWS_MAX} rows each, looked at every ${WINDOW_EVERY_MS / 1_000} s; ${WINDOWS_OF_CLIENT_MAX} different ones for one client (an address, or the owner of a key) and ${WINDOWS_MAX} for all, and one more is 429 |
| Subscriptions of a WebSocket | ${SUBSCRIPTIONS_MAX} |
| Message of a client | ${STREAM_MESSAGE_BYTES_MAX} bytes; a larger one closes the socket |
| Age of a stream | ${FOLLOW_AGE_MS_MAX / 60_000} minutes, then \`bye\` with \`${MAX_AGE}\` |
| A client that reads nothing | for ${FOLLOW_STALLED_MS_MAX / 1_000} s, or twice behind what the market remembers: \`bye\` with \`${SLOW_CONSUMER}\` |
| Unread bytes of a WebSocket | ${SOCKET_BACKPRESSURE_BYTES_MAX}; beyond that it is closed |
| A silent WebSocket | is closed after ${SOCKET_IDLE_SECONDS_MAX} s; the server's pings keep it open |
`
