/**
 * `npm run bench:exact`: compares our offline check of one payment with viem's recovery of the same signature. Prints CPU
 * microseconds and how many times faster than viem each is.
 */
import { recoverTypedDataAddress } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createExactEvm } from '../../gateway/methods/exact-evm/exact-evm.ts'
import { transferOf } from '../../gateway/methods/exact-evm/eip3009.ts'
import { decodePayment } from '../../gateway/methods/payment-method.ts'
import { NETWORKS } from '../../gateway/config/networks.ts'
import type { PaymentRequirements } from '../../gateway/x402/payment-requirements.ts'
import { base64, createPayment, type Requirement, typedData } from '../../test/support/wallet.ts'
import { readFlags } from '../command-line.ts'
import { cpuMicros } from './cpu-time.ts'

readFlags('Usage: npm run bench:exact', {})
const network = NETWORKS.base
const requirements: PaymentRequirements = {
  scheme: 'exact',
  network,
  amount: 5000n,
  payTo: '0x00000000000000000000000000000000000000A1',
  maxTimeoutSeconds: 300,
}
const account = privateKeyToAccount(generatePrivateKey())
const method = createExactEvm(network)
const requirement = method.acceptsV2(requirements) as unknown as Requirement
const payment = await createPayment({ account, requirement, version: 2 })
const header = base64(payment)
const payload = decodePayment(header, [method])
const transfer = transferOf(payload)
const { from, to, nonce, signature } = transfer
const amounts = {
  value: String(transfer.value),
  validAfter: String(transfer.validAfter),
  validBefore: String(transfer.validBefore),
}
const data = typedData(requirement, { from, to, nonce, ...amounts })
const now = Math.floor(Date.now() / 1000)

/** Returns the mean CPU microseconds per run, after a tenth as many runs to warm up. */
async function measure(runs: number, work: () => unknown): Promise<number> {
  for (let run = 0; run < runs / 10; run++) await work()
  const start = cpuMicros()
  for (let run = 0; run < runs; run++) await work()
  return (cpuMicros() - start) / runs
}

if (method.verify(payload, requirements, now) !== null) throw new Error('The payment was refused.')
const viem = await measure(300, () => recoverTypedDataAddress({ ...data, signature }))
const ours = await measure(5_000, () => method.verify(payload, requirements, now))
const whole = await measure(5_000, () => method.verify(decodePayment(header, [method]), requirements, now))
const line = (name: string, us: number): string =>
  `${name.padEnd(40)} ${us.toFixed(1).padStart(8)} µs   ${(viem / us).toFixed(1)}x`
process.stdout.write(
  `${[
    line('viem recoverTypedDataAddress', viem),
    line('verify, all checks', ours),
    line('decodePayment and verify', whole),
  ].join('\n')}\n`,
)
