/** The names that exports give their columns. A new export is a word in one of these lists. */

/** What a column can be used as. */
export type Field =
  | 'symbol'
  | 'expiry'
  | 'strike'
  | 'right'
  | 'side'
  | 'exitSide'
  | 'positionSide'
  | 'openClose'
  | 'short'
  | 'long'
  | 'qty'
  | 'stake'
  | 'entryTime'
  | 'entryPrice'
  | 'exitTime'
  | 'exitPrice'
  | 'buyTime'
  | 'buyPrice'
  | 'sellTime'
  | 'sellPrice'
  | 'time'
  | 'clock'
  | 'price'
  | 'fees'
  | 'entryFees'
  | 'exitFees'
  | 'entryRate'
  | 'exitRate'
  | 'funding'
  | 'feeCurrency'
  | 'currency'
  | 'contractSize'
  | 'pnl'
  | 'balance'
  | 'trial'
  | 'status'
  | 'number'
  | 'type'
  | 'signal'

/** Names of columns without anything between the words, separated by spaces, the most reliable first. */
export const NAMES: Readonly<Record<Exclude<Field, 'clock' | 'openClose'>, string>> = {
  symbol:
    'symbol ticker tickersymbol pair currencypair tradingpair instrument instrumentname tradingsymbol symbols contractsymbol localsymbol market stock scrip security securityname securityid asset assetname product productid productname contract contractname item epic isin wkn cusip sedol figi conid valor coin token crypto currencyname identifier code stockcode scripcode securitycode underlying underlyingsymbol underlyingasset name description productdescription wertpapier titel titulo papel activo ativo simbolo titre valeur libelle strumento fonds instrumentid instrumentcode contracts column',
  expiry: 'expiry expirydate expiration expirationdate maturity maturitydate contractmonth expire',
  strike: 'strike strikeprice',
  right: 'right putcall callput callorput putorcall optiontype cp pc',
  side: 'side direction positionside tradedirection buysell action tradeaction tradetype tradeside orderside marketpos marketposition longshort ls bs dir pos position trade trans transcode transaction transactiontype transtype type ordertype operation operationtype op richtung seite art auftragsart kaufverkauf sens lado tipo tipooperacion direccion direcao operacao operazione segno buyorsell longorshort activity activitytype',
  exitSide: 'closingdirection closedirection closingside closeside exitside exitdirection exitaction',
  positionSide: 'positionside posside',
  short: 'isshort short',
  long: 'islong',
  qty: 'fillquantity filledquantity filled filledqty filledamount executedqty executedquantity execqty dealquantity qty quantity executed lastqty quantitytransacted size sizeqty positionsizeqty shares contracts units lots lot volume vol amount volumelots volumelot stuck stuckzahl anzahl menge nominale stucknominale cantidad titulos acciones quantite quantidade quantita aantal antal mangd qtyshares noofshares numberofshares sharesquantity positionsize',
  stake: 'stakeamount stake',
  entryTime:
    'entrytime entrydate entrydatetime entrytimestamp opendate opentime opentimestamp openedat datein entryindex dateopened timeopened entered opened entry',
  entryPrice:
    'entryprice avgentryprice openrate openprice avgopenprice entryrate pricein averageentryprice averageopenprice entry avgentry averageentry',
  exitTime:
    'exittime exitdate exitdatetime exittimestamp closedate closetime closetimestamp closedat dateout exitindex dateclosed timeclosed exited closed exit',
  exitPrice:
    'exitprice avgexitprice closerate closeprice avgcloseprice exitrate priceout averageexitprice averagecloseprice exit avgexit averageexit',
  buyTime:
    'boughttimestamp buytime buydate buydatetime buytimestamp boughtat boughton dateacquired dateofpurchase kaufdatum',
  buyPrice: 'buyprice boughtprice buyrate kaufkurs kaufpreis buyavg avgbuyprice averagebuyprice purchaseprice',
  sellTime:
    'soldtimestamp selltime selldate selldatetime selltimestamp soldat soldon datesold dateofsale verkaufsdatum',
  sellPrice: 'sellprice soldprice sellrate verkaufskurs verkaufspreis sellavg avgsellprice averagesellprice saleprice',
  time: 'filltime filledat executedat executiontime orderexecutiontime time datetime dateandtime date timestamp tradetime createdat dt tradedate fillindex rundate activitydate transactiondate dateexecuted timeexecuted transacttime',
  price:
    'fillprice avgfillprice filledavgprice avgprice averageprice executionprice execprice executedprice tradeprice dealprice lastprice price tprice priceperunit priceattransaction pricepershare unitprice rate kurs preis ausfuhrungskurs precio preco prix cours prezzo koers pris',
  fees: '',
  entryFees: '',
  exitFees: '',
  entryRate: 'feeopen',
  exitRate: 'feeclose',
  funding: 'fundingfees swap swaps rollover overnightfee overnightfees financing financingfee',
  feeCurrency:
    'feecoin feecurrency feesymbol feeasset feetoken feeunit feeccy feescurrency feecoinname commissionasset commissioncurrency commissioncoin commissionccy ibcommissioncurrency commcurrency commissionunit feecur tradefeecurrency tradingfeecurrency',
  currency:
    'currency quotecurrency tradecurrency pricecurrency settlementcurrency settlecurrency currencyprimary ccy quoteasset quoteccy wahrung devise divisa moneda moeda valuta',
  contractSize: 'multiplier mult contractsize contractmultiplier pointvalue bigpointvalue lotsize priceperpoint',
  pnl: 'pnl profitabs profit profitloss pl netpnl netpl realizedpnl realisedpnl realizedpl realisedpl netprofit closedpnl closedpl grosspnl grosspl grossprofit realizedprofit fifopnlrealized profitandloss gainloss gl realizedgainloss gewinn gewinnverlust guv ergebnis resultado beneficio ganancia lucro winst netpnlabs absolutepnl profitamount pnlabs pnlamount',
  balance: 'balance accountbalance equity accountbalance netliquidation',
  trial: 'trial trialid trialno variant',
  status: 'status orderstatus state',
  number: 'trade tradeno tradenumber',
  type: 'type ordertype',
  signal: 'signal',
}

/** Words that make a name a time, a price, of the entry or of the exit. */
export const ENTRY = words(
  'entry entered en open opening opened in einstieg eroffnung apertura ouverture abertura start begin',
)
export const EXIT = words(
  'exit exited ex close closing closed out ausstieg schliessung cierre cloture fechamento chiusura end finish',
)
export const TIME = words('date time datetime timestamp dt at on datum zeit uhrzeit fecha data heure hora ora tijd')
export const PRICE = words('price px rate preis kurs prix precio preco prezzo cours koers')
/** Words that say nothing more. */
export const PLAIN = words(
  'avg average mean fill filled exec executed execution trade trades traded transaction deal order orders the of in and actual local stamp type trx txn run activity weighted vwap per unit share',
)

/** Names that may be a time or a price, so that only what they hold tells. */
export const BARE = words('entry exit entered exited opened closed')
export const QTY = words('qty quantity shares contracts lots size units menge anzahl cantidad quantidade quantite')

/** Words of fees, and those that make a name something else than an amount of a fee. */
export const FEE = words(
  'fee fees commission commissions comm comms comission brokerage gebuhr gebuhren provision provisionen kommission courtage frais comision comisiones comissao corretagem taxas commissioni commissione kosten spesen kurtage avgift kosten charges charge',
)
export const NO_FEE = words(
  'rate rates percent pct perc bps currency coin asset ccy type tier id level role token unit symbol account model group per funding before incl including plus rebate rebates index date time price adjusted ratio overnight financing discount tax',
)
/** Whole names of fees that do not say so. */
export const FEE_NAMES = words(
  'sec secfee taf taffee nfa ecn orf clearing clearingcost stt gst sst vat stampduty stamptax stamp levy exchangelevy tradinglevy taxes tax transactiontax regulatory regfee turnovertax finratafee borrowfee ipfee transactioncost transactioncosts costs tradingcosts tradecosts totalcost totalcosts commfee transactioncharges ibcommission ibcommissions',
)
/** Names of fees that contain others. */
export const TOTAL = words('total totals all sum overall gesamt gesamtkosten totale combined')

/** Exports that write what is paid as a negative amount, whatever its sum: a positive one is a rebate. */
export const PAID_IS_NEGATIVE = words('ibcommission commfee commin ibcommissions')

/** Columns that no audit needs, so that a report does not wonder about them. */
export const NOT_NEEDED = words(
  'id orderid tradeid execid executionid transactionid dealid deal order ticket positionid clientorderid comment comments note notes tag entertag exittag exitreason reason account accountid accountname exchange venue broker route strategy strategyname signal bars entrybar exitbar barsheld duration mae mfe etd runup drawdown leverage margin sl tp stoploss takeprofit stop limitprice orderprice ordertype exectype assetcategory assetclass datadiscriminator header trades code total value notional proceeds basis costbasis amount netamount grossamount cumprofit cumnetprofit cumulativepnl cumpnl return returnpct profitratio profitpercent percentprofit roi chg percentchg maker taker liquidity role isclosed isopen settlementdate settledate processdate platform user page source',
)

const VOCABULARY = [ENTRY, EXIT, TIME, PRICE, PLAIN, QTY, FEE, NO_FEE, TOTAL]
const isKnown = (word: string): boolean => VOCABULARY.some((list) => list.has(word))

/** The words of a name that is written as one: "exectime" is "exec time". Other names stay. */
export function apart(names: readonly string[]): readonly string[] {
  const [only = '', second] = names
  if (second !== undefined || isKnown(only)) return names
  for (let at = 2; at < only.length - 1; at += 1) {
    const [head, tail] = [only.slice(0, at), only.slice(at)]
    if (!isKnown(head)) continue
    const rest = apart([tail])
    if (rest.length > 1 || isKnown(tail)) return [head, ...rest]
  }
  return names
}

function words(list: string): ReadonlySet<string> {
  return new Set(list.split(' '))
}
