import { InvalidInput } from 'tollgate/plugin'
import { quoted } from '../../lib/tables/column-names.ts'
import type { Header } from './ledger-header.ts'

/**
 * Which sign a paid fee has in a file: what a known export means by its signs, or what the caller states; otherwise what
 * both the number and the sum of the amounts say. The other sign is a rebate.
 */
export class FeeSigns {
  readonly #header: Pick<Header, 'feeColumns' | 'paidSign' | 'columns' | 'names'>
  #up = 0
  #upSum = 0
  #down = 0
  #downSum = 0

  constructor(header: FeeSigns['header']) {
    this.#header = header
  }

  get header(): Pick<Header, 'feeColumns' | 'paidSign' | 'columns' | 'names'> {
    return this.#header
  }

  /** Counts a fee as the file signs it. */
  add(fee: number): void {
    if (fee > 0) {
      this.#up += 1
      this.#upSum += fee
    } else if (fee < 0) {
      this.#down += 1
      this.#downSum -= fee
    }
  }

  /** Whether amounts of both signs were counted. */
  get isMixed(): boolean {
    return this.#up > 0 && this.#down > 0
  }

  /** 1 if paid fees are positive, -1 if they are negative. Throws InvalidInput if number and sum of the amounts disagree. */
  paid(): 1 | -1 {
    const known = this.#header.paidSign
    if (known?.isStated) return known.sign
    if (!this.isMixed) return this.#down > 0 ? -1 : 1
    if (known) return known.sign
    const [byNumber, bySum] = [Math.sign(this.#up - this.#down), Math.sign(this.#upSum - this.#downSum)]
    if (byNumber === bySum && byNumber !== 0) return byNumber as 1 | -1
    throw this.#ambiguous()
  }

  /** What was counted, in words: "2 positive amounts, 0.3 in sum, and 4 negative ones, 20 in sum". */
  get summary(): string {
    return `${this.#up} positive amounts, ${round(this.#upSum)} in sum, and ${this.#down} negative ones, ${round(this.#downSum)} in sum`
  }

  /** The columns of fees, as the file names them. */
  get names(): readonly string[] {
    const { feeColumns, columns, names } = this.#header
    const all = feeColumns.length > 0 ? feeColumns : [columns.entryFees, columns.exitFees]
    return all.flatMap((index) => (index === undefined ? [] : [names[index] ?? '']))
  }

  #ambiguous(): InvalidInput {
    const [first = 'fees'] = this.names
    const msg = `It is not clear which fees are paid and which are rebates: ${this.names.slice(0, 6).map(quoted).join(', ')} has ${this.summary}. Say in columns "${first.slice(0, 40)}=fees_paid_positive" or "${first.slice(0, 40)}=fees_paid_negative".`
    return new InvalidInput([{ loc: ['body', 'file', 'header', first], msg, type: 'ambiguous_fee_signs' }])
  }
}

const round = (value: number): number => Number(value.toPrecision(6))
