/** The process that attacks for `npm run lab -- unpaid`: prepares its bodies, says so, attacks when it is told to, and says what was answered. */
import { once } from 'node:events'
import { ATTACKS } from './attacks.ts'

const [name, base = ''] = process.argv.slice(2)
const run = ATTACKS.find((each) => each.name === name)?.prepare(base)
process.send?.('ready')
await once(process, 'message')
process.send?.((await run?.()) ?? '', () => process.exit())
