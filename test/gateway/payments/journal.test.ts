import { journalContract } from '../../contracts/journal.ts'
import { LEDGERS } from '../../contracts/ledgers.ts'

for (const [name, create] of Object.entries(LEDGERS)) journalContract(name, create)
