import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import { DataError } from '../../../gateway/stores/data-error.ts'
import { checkSqliteFile, RESTORE_MARK } from '../../../gateway/stores/sqlite-files.ts'
import { paymentIn } from '../../contracts/journal-payments.ts'

/** Every way a file can be broken that is told from the file alone, and what is said about it. */
const DAMAGE: Readonly<Record<string, { readonly harm: (file: string) => void; readonly says: string }>> = {
  'ends within a page': {
    harm: (file) => truncateSync(file, statSync(file).size - 1_000),
    says: 'it ends within a page',
  },
  'has lost whole pages': { harm: (file) => truncateSync(file, 8_192), says: 'is damaged' },
  'ends within its header': { harm: (file) => truncateSync(file, 50), says: 'it ends within its header' },
  'is something else': {
    harm: (file) => writeFileSync(file, 'not a database'.repeat(1_000)),
    says: 'its header is not that of a SQLite database',
  },
  'has a page of garbage': {
    harm: (file) => overwrite(file, 2 * 4_096, Buffer.alloc(4_096, 0x5a)),
    says: 'is damaged',
  },
  'has a page of zeros': { harm: (file) => overwrite(file, 3 * 4_096, Buffer.alloc(4_096)), says: 'is damaged' },
}

function overwrite(file: string, at: number, bytes: Buffer): void {
  const fd = openSync(file, 'r+')
  writeSync(fd, bytes, 0, bytes.length, at)
  closeSync(fd)
}

describe('the check of a database file', () => {
  let folder: string
  let file: string
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-files-'))
    file = join(folder, 'journal.sqlite')
    const journal = await openJournal({ file })
    for (let count = 0; count < 20; count++) await paymentIn(journal, 'settled')
    await journal.close()
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const errorOf = (waitMs?: number): Promise<unknown> =>
    checkSqliteFile(file, waitMs).then(
      ({ rest }) => rest,
      (error: unknown) => error,
    )

  it('finds nothing wrong with a whole file, an empty one, or none', async () => {
    expect(await errorOf()).to.equal(null)
    writeFileSync(file, '')
    expect(await errorOf()).to.equal(null)
    rmSync(file)
    expect(await errorOf()).to.equal(null)
  })

  for (const [how, { harm, says }] of Object.entries(DAMAGE))
    it(`names a file that ${how}, with the step that restores it, and changes nothing`, async () => {
      harm(file)
      const before = readFileSync(file)
      const error = await errorOf()
      expect(error).to.be.instanceOf(DataError)
      const { message } = error as Error
      expect(message).to.contain(file).and.to.contain(says).and.to.contain('npm run restore -- <backup> --replace')
      expect(readFileSync(file).equals(before)).to.equal(true)
    })

  it('finds the same in a file too large for the start, while the gateway serves', async () => {
    overwrite(file, 2 * 4_096, Buffer.alloc(4_096, 0x5a))
    expect(await errorOf(0)).to.be.instanceOf(DataError)
  })

  it('refuses a folder whose restore was interrupted', async () => {
    writeFileSync(join(folder, RESTORE_MARK), '')
    expect(await errorOf())
      .to.be.instanceOf(DataError)
      .with.property('message')
      .that.contains('Run it again: npm run restore')
  })
})

describe('a journal whose file turns out to be damaged', () => {
  it('takes no payment from then on, though single writes may still succeed', async () => {
    const journal = await openJournal({ file: ':memory:', damage: { found: Promise.resolve('a page is damaged') } })
    await new Promise((resolve) => setImmediate(resolve))
    await paymentIn(journal, 'settled')
    expect(journal.health()).to.deep.equal({ ready: false, reason: 'a page is damaged' })
    await journal.close()
  })
})
