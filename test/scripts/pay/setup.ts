/** A sandbox, a seller that settles on it, and the paying client, for one suite. */
import { join } from 'node:path'
import { openSandbox, type Sandbox } from '../../../gateway/sandbox/sandbox.ts'
import { run } from '../../../scripts/pay/run.ts'
import { quiet, skipWithoutAnvil, temporaryFolder } from '../../gateway/sandbox/laboratory.ts'
import { openSeller } from './seller.ts'

/** Call it inside `describe`: it opens and closes everything, and resets the seller's behaviour before each test. */
export function openCounter() {
  const folder = temporaryFolder()
  const counter = {
    folder: folder.path,
    sandbox: null as unknown as Sandbox,
    seller: null as unknown as Awaited<ReturnType<typeof openSeller>>,
    /** Runs a command line. Returns the exit code and the output. */
    async pay(...argv: string[]): Promise<{ code: number; text: string }> {
      let text = ''
      const out = { write: (part: string) => (text += part) }
      return { code: await run(argv, { dataDir: folder.path, out }), text }
    },
    /** The requests that carried a payment. */
    paid: () => counter.seller.seen.filter(({ payment }) => payment),
  }
  let usual: (typeof counter)['seller']['behaviour']

  before(async function () {
    skipWithoutAnvil(this)
    counter.sandbox = await openSandbox({ dataDir: join(folder.path, 'sandbox-sample'), blockSeconds: 0, log: quiet })
    counter.seller = await openSeller(counter.sandbox)
    usual = { ...counter.seller.behaviour }
    await counter.sandbox.describe(counter.seller.base)
  })
  beforeEach(() => {
    Object.assign(counter.seller.behaviour, usual)
    counter.seller.seen.length = 0
    counter.seller.settled.clear()
  })
  after(async () => {
    await counter.seller?.close()
    await counter.sandbox?.close()
    folder.remove()
  })
  return counter
}

/** Returns the text behind a label. */
export function line(text: string, label: string): string {
  return text.match(new RegExp(`^${label} +(.*)$`, 'm'))?.[1] ?? ''
}
