/**
 * A real gateway on the real sandbox that kills itself with SIGKILL at one exact step, the first time it gets there. Run
 * it as a process. CRASH_FILE is a file that holds the name of the step; an empty file means that it does not crash.
 */
import { readFileSync } from 'node:fs'
import { readConfig } from '../../gateway/config/config.ts'
import { createGateway } from '../../gateway/compose.ts'
import { openSettlement } from '../../gateway/wiring/settlement.ts'
import { createLog } from '../../gateway/observe/log.ts'
import type { Settler } from '../../gateway/methods/payment-method.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'

const crashFile = process.env['CRASH_FILE'] ?? ''

/** Called right after a step: reserved, submitted, sent, settled, settledByOthers. */
const die = (step: string): void => {
  if (readFileSync(crashFile, 'utf8') === step) process.kill(process.pid, 'SIGKILL')
}

const crashing = (journal: Journal): Journal => ({
  ...journal,
  async reserve(reservation) {
    const result = await journal.reserve(reservation)
    die('reserved')
    return result
  },
  async submitted(...step) {
    const result = await journal.submitted(...step)
    die('submitted')
    return result
  },
  async settled(...step) {
    const result = await journal.settled(...step)
    die('settled')
    return result
  },
  async settledByOthers(...step) {
    const result = await journal.settledByOthers(...step)
    die('settledByOthers')
    return result
  },
})

const config = readConfig()
const log = createLog('silent')
const settlement = await openSettlement(config, log)
const settler: Settler = {
  ...settlement.settler,
  async settle(payload, requirements, options) {
    const outcome = await settlement.settler.settle(payload, requirements, options)
    // The transfer is on the chain, but the journal does not have it yet.
    die('sent')
    return outcome
  },
}
const gateway = await createGateway(config, {
  settlement: { ...settlement, settler },
  journal: crashing,
  log,
  reconcileSeconds: 1,
})
await gateway.listen()
await settlement.sandbox?.describe(config.baseUrl)
process.on('SIGTERM', () => {
  void gateway.close().then(() => process.exit(0))
})
process.stdout.write('ready\n')
