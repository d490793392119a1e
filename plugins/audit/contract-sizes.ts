/** Sizes of well-known contracts: money for a move of 1 in the price of one contract or lot. */
import { forexPairOf } from './currency-pairs.ts'

export interface KnownContract {
  readonly size: number
  readonly kind: 'future' | 'option' | 'forex'
  /** Whether the name can mean nothing else. "ES" alone is also a share, "ESZ4" is not. */
  readonly isCertain: boolean
}

/** Sizes by the root of the symbol, from the specifications of CME, CBOT, NYMEX, COMEX, ICE and Eurex. */
const FUTURES = new Map(
  [
    'ES:50 MES:5 NQ:20 MNQ:2 YM:5 MYM:0.5 RTY:50 M2K:5 EMD:100 NKD:5 VX:1000 DX:1000 CL:1000 MCL:100',
    'QM:500 BZ:1000 NG:10000 QG:2500 RB:42000 HO:42000 GC:100 MGC:10 QO:50 SI:5000 SIL:1000 QI:2500',
    'HG:25000 MHG:2500 PL:50 PA:100 ZB:1000 UB:1000 ZN:1000 TN:1000 ZF:1000 ZT:2000 ZC:50 ZS:50 ZW:50',
    'KE:50 ZM:100 ZL:600 LE:400 HE:400 GF:500 KC:375 CT:500 SB:1120 CC:10 6E:125000 M6E:12500 6B:62500',
    'M6B:6250 6A:100000 M6A:10000 6C:100000 6J:12500000 6S:125000 6N:100000 6M:500000 FDAX:25 FDXM:5',
    'FDXS:1 FESX:10 FSXE:1 FGBL:1000 FGBM:1000 FGBS:1000 FGBX:1000 MBT:0.1 MET:0.1',
  ].flatMap((line) =>
    line.split(' ').map((entry): [string, number] => {
      const [root = '', size] = entry.split(':')
      return [root, Number(size)]
    }),
  ),
)
/** Roots that are not names of shares. */
const ONLY_FUTURES = new Set(
  'MES MNQ MYM M2K MCL MGC MHG NKD 6E 6B 6A 6C 6J 6S 6N 6M M6E M6B M6A FDAX FDXM FDXS FESX FGBL FGBM FGBS MBT'.split(
    ' ',
  ),
)
/** "ESZ4", "ESZ2024", "ES 03-25", "/ES", "@ES#C", "NQ1!", "ES.FUT", "CME_MINI:ES1!". */
const DATED = /^([A-Z0-9]{1,4}?)(?:[ _-]?[FGHJKMNQUVXZ]\d{1,2}(?:\d\d)?|[ _](?:\d\d[-/]\d\d|[A-Z]{3}[- ]?\d\d))$/
const MARKED = /^(?:[/@#]([A-Z0-9]{1,4})(?:#C?)?(?:[FGHJKMNQUVXZ]\d{1,2})?|([A-Z0-9]{1,4})(?:[12]!|=F|\.FUT|[ _-]FUT))$/
/** OCC's "AAPL  240119C00190000", brokers' "AAPL 19JAN24 190 C", "SPY 01/19/2024 450.00 C", ".SPY240119C450". */
const OPTION =
  /^\.?[A-Z.]{1,6}\s*\d{6}[CP]\d+(?:\.\d+)?$|^[A-Z.]{1,6}\s.*\d.*\s(?:C|P|CALL|PUT)$|^[A-Z.]{1,6}\s.*\d.*\s(?:CALL|PUT)\b/i
const OPTION_SIZE = 100
const LOT = 100_000
/** Ounces in a lot. */
const METALS: Readonly<Record<string, number>> = { XAU: 100, XAG: 5000, XPT: 100, XPD: 100 }

/**
 * The contract that the name of a symbol means, with the size of one contract or lot; null for shares and coins.
 *
 * @example knownContract('MNQZ4') // { size: 2, kind: 'future', isCertain: true }
 */
export function knownContract(symbol: string): KnownContract | null {
  const name = symbol.trim().replace(/^[A-Z_]{2,10}:/, '')
  if (OPTION.test(name)) return { size: OPTION_SIZE, kind: 'option', isCertain: true }
  const marked = MARKED.exec(name.toUpperCase())
  const root = marked?.[1] ?? marked?.[2] ?? DATED.exec(name.toUpperCase())?.[1]
  const size = FUTURES.get(root ?? name.toUpperCase())
  if (size !== undefined)
    return { size, kind: 'future', isCertain: root !== undefined || ONLY_FUTURES.has(name.toUpperCase()) }
  const pair = forexPairOf(name)
  return pair ? { size: METALS[pair.base] ?? LOT, kind: 'forex', isCertain: true } : null
}

/** Sizes that contracts have: 1, 2, 2.5, 5, 6.25, 12.5 and 4.2 times a power of ten. */
const STEPS = [1, 1.25, 2, 2.5, 4, 4.2, 5, 6, 6.25, 7.5, 3.75, 1.12]

/**
 * The size that contracts have and a measured one is within a share of; null if none is so near.
 *
 * @example roundSize(49.97, 0.002) // 50
 */
export function roundSize(measured: number, share: number): number | null {
  const exponent = Math.floor(Math.log10(measured))
  for (const step of [...STEPS, 10]) {
    const size = Number((step * 10 ** exponent).toPrecision(3))
    if (Math.abs(measured / size - 1) <= share) return size
  }
  return null
}
