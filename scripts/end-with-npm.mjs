// npm and npx send signals to the shell that they started, and the shell ends without passing them on. So this process, where it was
// started by them, watches for the shell's end. Plain JavaScript, as its importers are.
const PARENT_POLL_MS = 500

if (['start', 'npx', 'cluster', 'backtest'].includes(process.env.npm_lifecycle_event)) {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, PARENT_POLL_MS)
  timer.unref()
}
