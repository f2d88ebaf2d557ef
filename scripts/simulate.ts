// npm run simulate -- [SEED] [--steps N] [--runs N] [--minutes M]
// The whole of it under faults, from one seed: the real server on a simulated machine, and a model that it is compared with.
import { install } from '../test/simulate/machine/install.ts'
import { isPlantedName, plant } from '../test/simulate/planted.ts'

const args = process.argv.slice(2)
const planted = args[args.indexOf('--plant') + 1]
if (args.includes('--plant')) {
  if (planted === undefined || !isPlantedName(planted)) throw new Error(`there is no bug ${planted}`)
  plant(planted)
}
const realNow = Date.now
install()
// What it imports finds the simulated machine.
const { main, USAGE } = await import('../test/simulate/command.ts')
let code = 2
if (args.includes('--help')) console.log(USAGE)
else
  try {
    code = await main(args, realNow)
  } catch (error) {
    console.error(`simulate: ${(error as Error).message}\n${USAGE}`)
  }
// Some handles of the real machine stay open.
process.exit(code)
