// A writer in a process of its own that can be killed: the real server, and what it carries out for other nodes. Where
// KILLED_AFTER_ANSWER names a file that does not exist, it makes the file and ends itself once the first submission is answered
// inside the process, before the answer is on the bus.
import { existsSync, writeFileSync } from 'node:fs'
import { startApp } from '../../../src/app.ts'
import { connectBus } from '../../../src/cluster/bus.ts'
import { ForwardServer } from '../../../src/cluster/forward/forward-server.ts'
import { readConfig } from '../../../src/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'

const config = readConfig(process.argv.slice(2), process.env)
const log = createLog({ format: 'text', quiet: true })
const app = await startApp(config, { log })
await app.ready
const bus = await connectBus({ ...config, busName: 'mintlake' }, 'writer')
const marker = process.env.KILLED_AFTER_ANSWER ?? ''
new ForwardServer({
  ...{ connection: bus.connection, names: bus.names, nodeId: `w${process.pid}`, isWriter: true },
  ...{ relay: app.http.relay, log, makeCheckpoint: null },
  position: async () => {
    if (marker !== '' && !existsSync(marker)) {
      writeFileSync(marker, '')
      process.kill(process.pid, 'SIGKILL')
    }
    return { eventNo: 0, accounts: 0 }
  },
})
console.log(`listening on ${app.url}`)
process.on('SIGTERM', () => void app.stop().then(() => process.exit(0)))
