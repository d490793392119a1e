import { expect } from 'chai'
import fc from 'fast-check'
import type { Hex } from '../../../../gateway/config/networks.ts'
import type { Transfer } from '../../../../gateway/methods/exact-evm/eip3009.ts'
import { RecentRefusals, REFUSED_SECONDS } from '../../../../gateway/methods/exact-evm/recent-refusals.ts'

const hex = (bytes: number): fc.Arbitrary<Hex> =>
  fc.constantFrom(...['00', '01', 'ff'].map((byte): Hex => `0x${byte.repeat(bytes)}`))

const TRANSFER: fc.Arbitrary<Transfer> = fc.record({
  from: hex(20),
  to: hex(20),
  value: fc.bigInt({ min: 1n, max: 6n }),
  validAfter: fc.bigInt({ min: 0n, max: 1n }),
  validBefore: fc.bigInt({ min: 2n, max: 3n }),
  nonce: hex(32),
  signature: fc.oneof(hex(65), hex(700)),
})

/** A moment in the life of wallets: time passes, money moves, and a payment is checked. */
const STEP = fc.record({
  transfer: TRANSFER,
  passedMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 * REFUSED_SECONDS * 1000 })),
  balance: fc.option(fc.bigInt({ min: 0n, max: 6n }), { nil: undefined }),
  isWrong: fc.boolean(),
})

describe('refusals that are remembered', () => {
  it('are those of the last seconds: of a balance for the same amount or more, of anything else for the very same payment', () => {
    let remembered = 0
    fc.assert(
      fc.property(fc.array(STEP, { minLength: 10, maxLength: 60 }), (steps) => {
        let now = 0
        const refusals = new RecentRefusals(() => now)
        const balances = new Map<Hex, bigint>()
        const refused: { readonly at: number; readonly transfer: Transfer; readonly reason: string }[] = []
        for (const { transfer, passedMs, balance, isWrong } of steps) {
          now += passedMs
          if (balance !== undefined) balances.set(transfer.from, balance)
          const recent = refused.filter(({ at }) => now - at < REFUSED_SECONDS * 1000)
          const isTooMuch = recent.some(
            ({ transfer: { from, value }, reason }) =>
              reason === 'insufficient_funds' && from === transfer.from && value <= transfer.value,
          )
          const isSame = recent.some(
            ({ transfer: other, reason }) =>
              reason !== 'insufficient_funds' &&
              Object.entries(other).every(([name, value]) => value === transfer[name as keyof Transfer]),
          )
          const found = refusals.find(transfer)
          if (found) {
            expect(found.reason === 'insufficient_funds' ? isTooMuch : isSame).to.equal(true)
            remembered += 1
            continue
          }
          expect(isTooMuch || isSame).to.equal(false)
          const isPoor = (balances.get(transfer.from) ?? 0n) < transfer.value
          if (!isPoor && !isWrong) continue
          const reason = isPoor ? 'insufficient_funds' : 'invalid_exact_evm_payload_signature'
          const said = refusals.add(transfer, { reason, message: reason })
          expect(said.retryAfterSeconds).to.equal(isPoor ? REFUSED_SECONDS : undefined)
          refused.push({ at: now, transfer, reason })
        }
      }),
      { numRuns: 300 },
    )
    expect(remembered).to.be.greaterThan(100)
  })

  it('are at most ten thousand of each kind, whatever strangers send', () => {
    const refusals = new RecentRefusals(() => 0)
    const transfer = (nth: number): Transfer => ({
      from: `0x${nth.toString(16).padStart(40, '0')}`,
      to: '0x01',
      value: 1n,
      validAfter: 0n,
      validBefore: 1n,
      nonce: '0x02',
      signature: '0x03',
    })
    for (const reason of ['insufficient_funds', 'invalid_transaction_state']) {
      for (let nth = 0; nth < 10_001; nth++) refusals.add(transfer(nth), { reason, message: reason })
      expect(refusals.find(transfer(0))).to.equal(null)
      expect(refusals.find(transfer(10_000))).to.include({ reason: 'insufficient_funds' })
    }
  })
})
