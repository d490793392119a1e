import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect } from 'chai'
import { parseTransaction } from 'viem'
import { createSigner } from '../../gateway/methods/exact-evm/chain/transaction-signer.ts'

const root = resolve(import.meta.dirname, '../..')
const KEY = `0x${'46'.repeat(32)}` as const
const SETTLERS = 'gateway/methods/exact-evm/'
/** The local chain of the sandbox, which has only test money. */
const SANDBOX = 'gateway/sandbox/'

const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const sources = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))

/** Returns the modules that a file loads at run time, without imports of types. */
const loaded = (file: string): readonly string[] =>
  [
    ...read(file).matchAll(
      /(?:^|\n)(?:import|export)(?! type)[^'\n]*(?:\{[^}]*\}[^'\n]*)?from '([^']+)'|import\(\s*'([^']+)'/g,
    ),
  ]
    .map(([, name, lazy]) => name ?? lazy ?? '')
    .map((name) => (name.startsWith('.') ? relative(root, resolve(root, dirname(file), name)) : name))

/** Returns all files and packages that these files load, directly or indirectly. */
function reachedFrom(files: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>()
  const queue = [...files]
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    if (file.endsWith('.ts') && !file.endsWith('.d.ts')) queue.push(...loaded(file))
  }
  return seen
}

describe('the custody of funds', () => {
  it('gives accounting code no way to send money: debts are only recorded', () => {
    const reached = reachedFrom(['scripts/ledger.ts', ...sources('gateway/accounting')])
    expect([...reached], 'imports are followed')
      .to.include(`${SETTLERS}nodes/rpc.ts`)
      .and.to.include('gateway/config/config.ts')
    const signing = [
      'chain/transaction-signer.ts',
      'chain/sender.ts',
      'chain/chain-settler.ts',
      'facilitator/facilitator-settler.ts',
    ].map((name) => SETTLERS + name)
    for (const file of signing) expect(existsSync(join(root, file)), file).to.equal(true)
    const sending = [...signing, 'secp256k1', 'viem/accounts']
    expect(sending.filter((name) => reached.has(name))).to.deep.equal([])
  })

  it('lets only the settlers send transactions, and only the signer sign them for a settler', () => {
    const gateway = sources('gateway').filter((file) => !file.startsWith(SANDBOX))
    const sends = [...gateway, ...sources('plugins')].filter((file) => /eth_send(Raw)?Transaction/.test(read(file)))
    expect(sends).to.not.have.length(0)
    expect(sends.filter((file) => !file.startsWith(SETTLERS))).to.deep.equal([])
    const signs = [...gateway, ...sources('plugins')].filter((file) =>
      /from '[^']*\/transaction-signer\.ts'|ecdsaSign|signTransaction|createWalletClient/.test(
        read(file).replace(/import type .*/g, ''),
      ),
    )
    expect(signs.filter((file) => !file.startsWith(SETTLERS)).sort()).to.deep.equal([
      'gateway/signer/signer.ts',
      // Asks the signer, and has no key.
      'gateway/stores/signer-client.ts',
      // Signs texts behind the prefix of EIP-191, which no transaction has.
      'gateway/tokens/attestation-keys.ts',
    ])
    expect(read('gateway/tokens/attestation-keys.ts').match(/ecdsaSign\(.*/g)).to.deep.equal([
      "ecdsaSign(hashMessage(text, 'bytes'), keyOf(product, serial))",
    ])
  })

  it('lets settlers transfer only what a buyer has signed, never the money of the recipient', () => {
    // Selectors and signatures of transfer, transferFrom, approve, increaseAllowance and permit of ERC-20.
    const transferCalls =
      /a9059cbb|23b872dd|095ea7b3|39509351|d505accf|\btransfer\(address|\btransferFrom\(address|\bapprove\(address/
    expect(
      sources('gateway').filter((file) => !file.startsWith(SANDBOX) && transferCalls.test(read(file))),
    ).to.deep.equal([])
  })

  it('lets the gas key pay for gas only: its transactions carry no value', () => {
    const { sign } = createSigner(KEY, 84532)
    const fees = { maxFeePerGas: 2n, maxPriorityFeePerGas: 1n }
    const { raw } = sign({ to: `0x${'0a'.repeat(20)}`, data: '0x01', gas: 21_000n, nonce: 0, ...fees })
    expect(parseTransaction(raw).value ?? 0n).to.equal(0n)
    const signingValue = sources(SETTLERS).filter((file) => /sign\(\{[^}]*\bvalue\b/.test(read(file)))
    expect(signingValue).to.deep.equal([])
    expect(read(`${SETTLERS}chain/transaction-signer.ts`)).to.not.match(/\bvalue\b/)
  })
})
