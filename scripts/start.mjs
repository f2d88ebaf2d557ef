// `npm start`: runs the server in this process, or prints what is wrong with the runtime. Plain JavaScript, since it has to run
// on a Node that cannot run the rest.
import './check-runtime.mjs'
import './end-with-npm.mjs'
import { programUrl } from './program.mjs'

// package.json gives Node one helper thread instead of four: garbage collection and compilation would otherwise take four
// fifths of a core that they share with the main thread (p99 of followers 13 ms instead of 60 on one core). A larger
// young generation and a heap that may grow to three times its size make both rarer (p99 of one caller: bench/README.md). V8 by
// itself would mark all of a heap of 40 MB once a second of a steady load. It begins when less is left below its limit than the
// two halves of the young generation: if the heap could only double, that would be after 5 MB, every five seconds.

await import('./server-env.mjs')
await import('./compile-cache.mjs')
await import(programUrl('main'))
