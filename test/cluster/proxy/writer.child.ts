// A writer in a process of its own that can be killed. Where KILLED_AFTER_ANSWER names a file that does not exist, it makes the file and
// ends itself once the first submission is stored and answered inside the process, before anything of the answer is sent.
import { existsSync, writeFileSync } from 'node:fs'
import { startApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { answering } from './answering.ts'

const config = readConfig(process.argv.slice(2), process.env)
const log = createLog('warn')
const marker = process.env.KILLED_AFTER_ANSWER ?? ''
const startServer = answering(async () => {
  if (marker === '' || existsSync(marker)) return
  writeFileSync(marker, '')
  process.kill(process.pid, 'SIGKILL')
})
const app = await startApp(config, { log, startServer })
await app.ready
console.log(`listening on ${app.url}`)
process.on('SIGTERM', () => void app.stop().then(() => process.exit(0)))
