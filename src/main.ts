// In: the command line, the environment, signals. Out: a running server, and an orderly end. Never knows a folder but
// config, and app.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { type App, startApp } from './app.ts'
import { ConfigError, readConfig, shownConfig, usage } from './config/config.ts'
import { createLog, type Log } from './lib/log.ts'

/** Beyond it whoever asked for the end would kill us: nothing acknowledged is lost, the next start does what is left. */
const STOP_MS_MAX = 24_000
/** What a call of the disk may take yet when everything else has ended. */
const DISK_MS_MAX = 1_000
/** What ends npm, its shell and us sends a signal to each, and start.mjs makes one of their end: within this they are one. */
const SAME_SIGNAL_MS = 1_000
const EXIT_USAGE = 2

async function main(): Promise<void> {
  const args = process.argv.slice(2)
  if (args.includes('--help')) {
    console.log(`mintlake: a streaming market-data engine with an embedded analytics store\n\n${usage()}`)
    return
  }
  const config = readConfig(args, process.env)
  const log = createLog({ format: config.logFormat, quiet: config.quiet })
  log.info(shownConfig(config), 'settings')
  const app = await startApp(config, { log })
  if (config.feeds.includes('simulator'))
    log.info({}, 'the market is SIMULATED: no token or trade shown here is real')
  stopOnSignals(app, log)
  // Others wait for this line, whatever the format of the log: it is printed as it is.
  console.log(`listening on ${app.url}`)
  await app.ready
  log.info({ tokens: app.market.stats().tokens }, 'ready')
}

function stopOnSignals(app: App, log: Log): void {
  let signalledAtMs: number | null = null
  const stop = (signal: string) => {
    if (signalledAtMs !== null) {
      if (performance.now() - signalledAtMs > SAME_SIGNAL_MS) void exit(1)
      return
    }
    signalledAtMs = performance.now()
    log.info({ signal }, 'shutting down')
    setTimeout(() => {
      log.error({}, 'shutting down took too long')
      void exit(1)
    }, STOP_MS_MAX).unref()
    app.stop().then(
      () => exit(0),
      (error) => {
        log.error({ err: error }, 'shutting down failed')
        return exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

const isDiskAtWork = (): boolean => process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'))

/** Ends the process. `process.exit` waits for every call of the disk: where that hangs, only a signal ends it. */
async function exit(code: number): Promise<void> {
  const untilMs = performance.now() + DISK_MS_MAX
  while (isDiskAtWork() && performance.now() < untilMs) await sleep(DISK_MS_MAX / 20)
  if (isDiskAtWork()) process.kill(process.pid, 'SIGKILL')
  process.exit(code)
}

main().catch((error: Error) => {
  console.error(`mintlake: ${error.message}`)
  if (error instanceof ConfigError) console.error('run with --help for the settings')
  process.exit(error instanceof ConfigError ? EXIT_USAGE : 1)
})
