import { journalContract } from '../../contracts/journal.ts'
import { lastingContract } from '../../contracts/lasting.ts'
import { LEDGERS } from '../../contracts/ledgers.ts'
import { modelContract } from '../../contracts/model.ts'

for (const [name, create] of Object.entries(LEDGERS)) {
  journalContract(name, create)
  if (name !== 'memory') lastingContract(name, create)
  modelContract(name, create, 60)
}
