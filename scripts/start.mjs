// `npm start`: runs the server in this process, or prints what is wrong with the runtime. Plain JavaScript, since it has to run
// on a Node that cannot run the rest.
import './check-runtime.mjs'
import './end-with-npm.mjs'
import { programUrl } from './program.mjs'

// package.json gives Node one helper thread instead of four: garbage collection and compilation would otherwise take four
// fifths of a core that they share with the main thread (p99 of followers 13 ms instead of 60 on one core). A larger
// young generation and a heap that may grow to three times its size make both rarer. V8 begins to mark the heap when what is left
// below that limit is less than the young generation's two halves: where a heap of 40 MB may only double, that is after 5 MB, every
// five seconds of a steady load, and by V8's own choice every second (p99 of one caller's submissions: 1.8 ms, 2.6 if the heap may
// only double).

// The HTTP engine's bound on request line and headers. Its default of 4 KiB is too little for cookies and proxies' headers.
process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= '16384'

// Node's default is four threads. A hanging disk blocks a thread for each pending call, and commits need a free one beside
// compression, log look-ups and the reader of a replay. In the lake process DuckDB's calls use them.
process.env.UV_THREADPOOL_SIZE ??= '16'

await import('./compile-cache.mjs')
await import(programUrl('main'))
