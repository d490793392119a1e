/** A sandbox, a seller that settles on it, and `npm run pay`, for one suite. */
import { join } from 'node:path'
import { openSandbox, type Sandbox } from '../../../gateway/sandbox/sandbox.ts'
import { run } from '../../../scripts/pay/run.ts'
import { quiet, skipWithoutAnvil, temporaryFolder } from '../../gateway/sandbox/usdc-client.ts'
import { openSeller } from './seller.ts'

/** Registers hooks in the current suite that open and close everything, and reset the seller before each test. */
export function usePay() {
  const folder = temporaryFolder()
  const setup = {
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
    paid: () => setup.seller.requests.filter(({ payment }) => payment),
  }
  let initial: (typeof setup)['seller']['behaviour']

  before(async function () {
    skipWithoutAnvil(this)
    setup.sandbox = await openSandbox({ dataDir: join(folder.path, 'sandbox-sample'), blockSeconds: 0, log: quiet })
    setup.seller = await openSeller(setup.sandbox)
    initial = { ...setup.seller.behaviour }
    await setup.sandbox.describe(setup.seller.base)
  })
  beforeEach(() => {
    Object.assign(setup.seller.behaviour, initial)
    setup.seller.requests.length = 0
    setup.seller.settled.clear()
  })
  after(async () => {
    await setup.seller?.close()
    await setup.sandbox?.close()
    folder.remove()
  })
  return setup
}

/** Returns the text behind a label. */
export function labelled(text: string, label: string): string {
  return text.match(new RegExp(`^${label} +(.*)$`, 'm'))?.[1] ?? ''
}
