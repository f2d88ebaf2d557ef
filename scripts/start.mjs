// In: the command line of `npm start`. Out: the server, in this same process, so that a signal to npm reaches it; or
// one plain paragraph on what is wrong with the runtime. Plain JavaScript: it must run on a Node that cannot run the rest.
import './check-runtime.mjs'

await import('../src/main.ts')
