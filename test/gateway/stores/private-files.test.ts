import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Logger } from 'pino'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { closeDataFolder } from '../../../gateway/stores/private-files.ts'

interface Warning {
  readonly closed?: number
  readonly open?: readonly string[]
}

describe('a folder of data', () => {
  let folder: string
  let dataRoot: string
  let dataDir: string
  const NOBODY = 65_534

  before(function () {
    if (process.platform === 'win32') this.skip()
  })
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-private-'))
    // Other users must get as far as the data.
    chmodSync(folder, 0o755)
    dataRoot = join(folder, 'data')
    dataDir = join(dataRoot, 'base-online')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  /** Makes a file or a folder with exactly this mode. */
  function put(path: string, mode: number, isFolder = false): string {
    if (isFolder) mkdirSync(path, { recursive: true })
    else writeFileSync(path, 'secret')
    chmodSync(path, mode)
    return path
  }
  const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8)
  /** Closes the folder and returns the warnings. */
  function close(): readonly Warning[] {
    const warnings: Warning[] = []
    closeDataFolder({ dataRoot, dataDir }, { warn: (fields: Warning) => warnings.push(fields) } as unknown as Logger)
    return warnings
  }

  /** The same as a user who is not root. */
  function closeAsAnother(): readonly Warning[] {
    process.seteuid?.(NOBODY)
    try {
      return close()
    } finally {
      process.seteuid?.(0)
    }
  }

  it('holds databases that only their user can read, under umask 0000 and without a gateway', async () => {
    const umask = process.umask(0)
    try {
      const db = openDatabase({ file: join(dataDir, 'products.sqlite') })
      const journal = await openJournal({ file: join(dataDir, 'journal.sqlite') })
      await db.schema.createTable('secrets', (table) => void table.text('secret'))
      const names = readdirSync(dataDir)
      expect(names).to.include.members(['journal.sqlite-wal', 'journal.sqlite-shm', 'products.sqlite-wal'])
      for (const name of names) expect([name, modeOf(join(dataDir, name))]).to.deep.equal([name, '600'])
      expect([modeOf(dataRoot), modeOf(dataDir)]).to.deep.equal(['700', '700'])
      await journal.close()
      await db.destroy()
    } finally {
      process.umask(umask)
    }
  })

  it('is closed with the folders of other networks, and warns of what others could read or change', () => {
    put(dataRoot, 0o755, true)
    const journal = put(join(put(dataDir, 0o755, true), 'journal.sqlite'), 0o644)
    const former = put(join(put(join(dataRoot, 'sandbox-sample'), 0o777, true), 'products.sqlite'), 0o640)
    expect(close()).to.deep.equal([{ folder: dataRoot, closed: 3 }])
    expect([dataRoot, dataDir, journal, former].map(modeOf)).to.deep.equal(['700', '700', '600', '600'])
    expect(close()).to.deep.equal([])
  })

  it('is closed without a warning if it was open and what is in it was not', () => {
    put(dataRoot, 0o755, true)
    put(join(put(dataDir, 0o755, true), 'journal.sqlite'), 0o600)
    expect(close()).to.deep.equal([])
    expect([dataRoot, dataDir].map(modeOf)).to.deep.equal(['700', '700'])
  })

  it('leaves alone what else DATA_DIR holds, and then DATA_DIR itself', () => {
    const notes = put(join(put(join(put(dataRoot, 0o755, true), 'notes'), 0o755, true), 'notes.txt'), 0o644)
    const journal = put(join(put(dataDir, 0o755, true), 'journal.sqlite'), 0o644)
    expect(close()).to.deep.equal([{ folder: dataRoot, closed: 1 }])
    expect([dataRoot, notes, dataDir, journal].map(modeOf)).to.deep.equal(['755', '644', '700', '600'])
  })

  it('may be a link, while links in it are not followed, and named if they lead to what others can read', () => {
    put(join(folder, 'disk/base-online'), 0o755, true)
    symlinkSync(join(folder, 'disk'), dataRoot)
    const outside = put(join(folder, 'journal.sqlite'), 0o644)
    const link = join(folder, 'disk/base-online/journal.sqlite')
    symlinkSync(outside, link)
    symlinkSync(join(folder, 'missing'), join(folder, 'disk/base-online/products.sqlite'))
    expect(close()).to.deep.equal([{ folder: dataRoot, open: [link] }])
    expect([outside, dataDir].map(modeOf)).to.deep.equal(['644', '700'])
  })

  it('keeps the mode of a socket, which may be for others', async () => {
    put(dataDir, 0o755, true)
    const server = createServer()
    const socket = join(dataDir, 'signer')
    await new Promise<void>((resolve) => server.listen(socket, resolve))
    chmodSync(socket, 0o660)
    expect(close()).to.deep.equal([])
    expect(modeOf(socket)).to.equal('660')
    await new Promise((resolve) => server.close(resolve))
  })

  it('is named in a warning if it belongs to another user', function () {
    if (process.getuid?.() !== 0) this.skip()
    put(dataDir, 0o755, true)
    const journal = put(join(dataDir, 'journal.sqlite'), 0o644)
    expect(closeAsAnother()).to.deep.equal([{ folder: dataRoot, open: [journal] }])
    expect(close()).to.deep.equal([{ folder: dataRoot, closed: 1 }])
  })

  it('is closed also in a DATA_DIR whose names this user may not read', function () {
    if (process.getuid?.() !== 0) this.skip()
    put(dataDir, 0o755, true)
    const journal = put(join(dataDir, 'journal.sqlite'), 0o644)
    for (const path of [dataDir, journal]) chownSync(path, NOBODY, NOBODY)
    chmodSync(dataRoot, 0o711)
    expect(closeAsAnother()).to.deep.equal([{ folder: dataRoot, closed: 1 }])
    expect([dataDir, journal].map(modeOf)).to.deep.equal(['700', '600'])
  })
})
