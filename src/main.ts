// The server's entry point: reads the configuration, starts the app and stops it on a signal.
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from './app.ts'
import { ConfigError, readConfig, shownConfig, usage } from './config/config.ts'
import { type Config, isWriter } from './config/settings.ts'
import { createLog, type Log } from './lib/log.ts'
import { ENDING_SIGNALS } from './lib/process/ending-signals.ts'
import { MINTLAKE_VERSION } from './lib/version.ts'
import type { FoundationOptions } from './server/foundation.ts'
import { forkLakeProcess } from './store/process/fork.ts'

/** A shutdown that takes longer is given up, before a supervisor kills the process. Nothing acknowledged is lost: the next start
 *  does the rest. */
const STOP_MS_MAX = 24_000
/** How long the process waits for file-system calls when everything else has ended. */
const DISK_MS_MAX = 1_000
/** npm, its shell and the server each get the signal, and scripts/start.mjs passes it on: repeats within this time count once. */
const SAME_SIGNAL_MS = 1_000
const EXIT_USAGE = 2

async function main(): Promise<void> {
  const args = process.argv.slice(2)
  if (args.includes('--help') || args.includes('-h')) {
    const text = usage(args.includes('all'))
    console.log(`mintlake: a streaming market-data engine with an embedded analytics store\n\n${text}`)
    return
  }
  if (args.includes('--version')) {
    console.log(`mintlake ${MINTLAKE_VERSION}`)
    return
  }
  const config = readConfig(args, process.env)
  const log = createLog(config.logLevel)
  log.info(shownConfig(config), 'settings')
  const options: FoundationOptions = { log }
  // The lake process loads its modules while this process loads its own.
  if (config.role !== 'reader') options.lakeProcess = forkLakeProcess()
  if (isWriter(config)) {
    const { whenWriterMayBegin } = await import('./cluster/writer/standby.ts')
    // What a standby has loaded it need not load while others wait for it. Whoever starts it sees where that fails.
    if (config.role === 'standby') import('./app.ts').catch(() => undefined)
    options.lock = await whenWriterMayBegin(config, log)
    const { lakeProcess } = options
    // A standby may have waited for months.
    if (lakeProcess?.exitCode !== null || lakeProcess.signalCode !== null)
      options.lakeProcess = forkLakeProcess()
  }
  const app = await start(config, options)
  if (config.role !== 'reader' && config.feeds.includes('simulator'))
    log.info({}, 'the market is SIMULATED: no token or trade shown here is real')
  stopOnSignals(app, log)
  // Scripts and tests wait for this line, so it does not depend on the log format.
  console.log(`listening on ${app.url}`)
  await app.ready
  log.info({ tokens: app.market.stats().tokens }, 'ready')
}

type Started = Pick<App, 'url' | 'market' | 'ready' | 'stop'>

/** Nothing of a cluster is loaded by a process that is none of one. */
async function start(config: Config, options: FoundationOptions): Promise<Started> {
  if (config.role === 'reader') {
    const { startReader } = await import('./cluster/reader/reader-app.ts')
    return startReader(config, options)
  }
  const { layFoundation } = await import('./server/foundation.ts')
  const laid = layFoundation(config, options)
  // Where it fails, startApp tells.
  laid.catch(() => undefined)
  const { startApp } = await import('./app.ts')
  return startApp(config, options, laid)
}

function stopOnSignals(app: Started, log: Log): void {
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
      () => {
        log.info({}, 'stopped')
        return exit(0)
      },
      (error) => {
        log.error({ err: error }, 'shutting down failed')
        return exit(1)
      },
    )
  }
  for (const signal of ENDING_SIGNALS) process.on(signal, stop)
  // A terminal that has closed takes no line any more: what is still said while the server stops must not end it.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}

/** Whether a file-system call is still running. */
const isDiskBusy = (): boolean => process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'))

/** Ends the process. `process.exit` waits for every file-system call; when the disk hangs, only SIGKILL ends the process. */
async function exit(code: number): Promise<void> {
  const untilMs = performance.now() + DISK_MS_MAX
  while (isDiskBusy() && performance.now() < untilMs) await sleep(DISK_MS_MAX / 20)
  if (isDiskBusy()) process.kill(process.pid, 'SIGKILL')
  process.exit(code)
}

main().catch((error: Error) => {
  console.error(`mintlake: ${error.message}`)
  if (error instanceof ConfigError)
    console.error('run with --help for the settings that matter first, with --help all for every one')
  process.exit(error instanceof ConfigError ? EXIT_USAGE : 1)
})
