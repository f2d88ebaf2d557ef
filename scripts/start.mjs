// In: the command line of `npm start`. Out: the server, in this same process; or one plain paragraph on what is wrong
// with the runtime. Plain JavaScript: it must run on a Node that cannot run the rest.
import './check-runtime.mjs'
import { fileURLToPath } from 'node:url'

// `npm start` gives Node one helper thread, not four: what collects garbage and compiles would otherwise take four fifths
// of a core that it shares with the thread everybody waits for (followers' p99: 13 ms instead of 60 on one core). And new
// objects get 8 MB, not 16: they stay in the processor's cache (submissions +7 %, pages +6 %, in turns on one core).

const PARENT_POLL_MS = 500

// npm passes a signal on to the shell it started, and that shell ends without passing it on to us: its end is the sign.
if (process.env.npm_lifecycle_event === 'start') {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, PARENT_POLL_MS)
  timer.unref()
}

// The HTTP engine's own bound on request line and headers, 4 KiB unless told: cookies and proxies' headers pass that.
process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= '16384'

// Four threads unless told: a disk that hangs holds one for each call that waits for it, and commits must find one free beside
// compression, look-ups in the log and a replay's reader. In the lake process DuckDB's calls take them.
process.env.UV_THREADPOOL_SIZE ??= '16'

// What was compiled at an earlier start is not compiled again, here and in the processes that are started from here: a tenth
// of a start. Where the folder cannot be written to, nothing is kept.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url))
const { enableCompileCache } = await import('node:module')
enableCompileCache(process.env.NODE_COMPILE_CACHE)

await import('../src/main.ts')
