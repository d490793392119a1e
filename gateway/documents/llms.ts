/** /llms.txt (https://llmstxt.org): a title, a summary, prose without headings, then lists of links under H2. */
import { callLimitSentences } from '../catalog/call-limits.ts'
import { dereference, fieldsOf } from '../catalog/schemas.ts'
import { type Catalog, type Operation, type Plan, TOKEN_HEADER } from '../plugin/catalog.ts'
import type { JsonSchema } from '../plugin/plugin.ts'
import {
  addressOf,
  exampleAddress,
  free,
  freshSentence,
  isPriced,
  priced,
  type PricedOperation,
  simplest,
} from './listed-operations.ts'
import { dollars } from '../dollars.ts'
import type { DocumentContext } from './document.ts'
import { recipientsOf } from '../config/pay-to.ts'
import {
  buyerProgram,
  capNotes,
  CURRENCY,
  howToPay,
  MCP_NOTE,
  MCP_PATHS,
  recipientsFor,
  tokenNotes,
} from './how-to-pay.ts'

/** Returns the text. It lists every priced route with its price. Every link answers 200 or 402. */
export function llms(catalog: Catalog, context: DocumentContext): string {
  const { service } = catalog
  const paid = priced(catalog).filter(({ plan }) => plan === null)
  const purchases = priced(catalog).filter(({ plan }) => plan !== null)
  const pages = free(catalog).filter(({ view, path }) => view !== null && !path.includes('{'))
  // A program that reads of a free form of the website beside the paid route would choose the form.
  const data = free(catalog).filter(({ view, form }) => view === null && form === null)
  const destinations = recipientsOf(context).map(
    ({ network, payTo }) => `on ${network.name} (${network.caip2}), to ${payTo}`,
  )
  return [
    `# ${service.name}`,
    `> ${service.summary}`,
    service.description,
    ...service.notes,
    `Catalog version: ${catalog.version}.`,
    `Payment: x402, ${CURRENCY} ${destinations.join('; or ')}. ${howToPay(context)}`,
    ...capNotes(catalog),
    ...tokenNotes(catalog),
    MCP_NOTE,
    INPUT_NOTE,
    ...paidExample(catalog, context),
    list('Products', products(catalog, context)),
    list(
      'Paid endpoints',
      paid.map((operation) => `${line(operation, context)}${inputOf(operation, catalog)}`),
    ),
    list(
      'Free endpoints',
      data.map((operation) => line(operation, context)),
    ),
    list(
      'Plans',
      purchases.map((operation) => planLine(operation, operation.plan as Plan, catalog, context)),
    ),
    list('MCP', [
      `- [MCP server](${context.baseUrl}${context.docs}#mcp): streamable HTTP at ${context.baseUrl}${MCP_PATHS.named}; tools: ${tools(catalog)}. Every paid endpoint is a tool at ${context.baseUrl}${MCP_PATHS.all}.`,
    ]),
    list(
      'Pages',
      pages.filter(({ method }) => method === 'GET').map((operation) => line(operation, context)),
    ),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
    .concat('\n')
}

const INPUT_NOTE =
  'Paid endpoints are listed below with their input; * marks what is required. Input that a route does not understand is refused with 422, which names the field, and not charged. /llms-full.txt says what each field means.'

/** The fields of the input by name, each with its values or its type. */
function inputOf({ params, query, body }: Operation, { schemas }: Catalog): string {
  const parts = [
    ['Path', params],
    ['Query', query],
    ['Body', body],
  ] as const
  return parts
    .map(([name, schema]) => {
      const required = schema === null ? [] : dereference(schema, schemas)['required']
      const fields = Object.entries(fieldsOf(schema, schemas)).map(
        ([field, rule]) => `${field}${Array.isArray(required) && required.includes(field) ? '*' : ''}${valuesOf(rule)}`,
      )
      return fields.length === 0 ? '' : ` ${name}: ${fields.join(', ')}.`
    })
    .join('')
}

/** The values that a field may have, or its type. Nothing where it may be text. */
function valuesOf({ enum: values, type }: JsonSchema): string {
  if (Array.isArray(values)) return ` (${values.map(String).join(' | ')})`
  const types = [type].flat().filter((each) => typeof each === 'string' && each !== 'null')
  return types.length === 0 || types.includes('string') ? '' : ` (${types.join(' or ')})`
}

/** What is sold, when to use it, and one call of each. */
function products(catalog: Catalog, context: DocumentContext): readonly string[] {
  return catalog.products.flatMap(({ title, summary, whenToUse, operations }) => {
    const sold = operations.filter((operation) => priced(catalog).includes(operation as PricedOperation))
    const [first] = sold.filter(({ plan }) => plan === null) as readonly PricedOperation[]
    if (!first) return []
    const example = `Example: ${code(`${first.method} ${exampleAddress(first, context.baseUrl)}`)}${exampleBody(first)}.`
    const text = [summary, whenToUse, example].filter(Boolean).join(' ')
    return [`- [${title}](${context.baseUrl}${context.docs}#${first.id}): ${text}`]
  })
}

function exampleBody({ example }: Operation): string {
  const body = example?.request.body
  return body === undefined ? '' : ` with ${code(typeof body === 'string' ? body : JSON.stringify(body))}`
}

const code = (text: string): string => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``)

function list(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [`## ${title}`, '', ...lines].join('\n')
}

function line(operation: Operation, context: DocumentContext): string {
  const { maxFreshnessSeconds: delay, displayRoute, summary } = operation
  const price = isPriced(operation) ? `$${dollars(operation.price)}. ` : ''
  const age = isPriced(operation) && delay > 0 ? ` Data at least ${delay / 3600} hours old.` : ''
  const terms = [callLimitSentences(operation), freshSentence(operation)].filter(Boolean).map((each) => ` ${each}`)
  return `- [${displayRoute}](${linkTo(operation, context)}): ${price}${summary}${age}${terms.join('')}`
}

function planLine(operation: PricedOperation, plan: Plan, catalog: Catalog, context: DocumentContext): string {
  const routes = plan.authorizes.map((id) => catalog.operations.get(id)?.displayRoute ?? id)
  const hours = plan.durationSeconds / 3600
  const duration = hours > 24 && hours % 24 === 0 ? `${hours / 24} days` : `${hours} hours`
  const age =
    plan.maxFreshnessSeconds === 0 ? 'real time' : `data at least ${plan.maxFreshnessSeconds / 3600} hours old`
  return `${line(operation, context)} Plan ${plan.plan}: ${duration}, ${age}; its token in ${TOKEN_HEADER} covers ${routes.join(', ')}.`
}

/** Returns a URL that answers a plain GET: the route itself if possible, otherwise its section of the documentation. */
function linkTo(operation: Operation, { baseUrl, docs }: DocumentContext): string {
  const filled = addressOf(operation, baseUrl)
  if (operation.method !== 'GET' || filled.includes('{')) return `${baseUrl}${docs}#${operation.id}`
  return isPriced(operation) ? filled : exampleAddress(operation, baseUrl)
}

function tools(catalog: Catalog): string {
  return [...catalog.operations.values()]
    .filter(({ tool }) => tool !== null)
    .map(({ tool, price }) => (price === null ? `${tool} (free)` : `${tool} ($${dollars(price)})`))
    .join(', ')
}

/** Shows one paid call of the simplest route, from the 402 to the receipt. */
function paidExample(catalog: Catalog, context: DocumentContext): readonly string[] {
  const operation = simplest(catalog)
  if (operation === undefined) return []
  const [{ network, payTo }] = recipientsFor(operation, context)
  const address = exampleAddress(operation, context.baseUrl)
  const accepted = {
    scheme: 'exact',
    network: network.caip2,
    amount: operation.price.toString(),
    asset: network.asset,
    payTo,
    extra: network.domain,
  }
  const answer = operation.example?.response
  const exchange = [
    `> ${operation.method} ${address}`,
    '< 402',
    '< PAYMENT-REQUIRED: base64 of {"x402Version":2,"resource":{"url":...},"accepts":[one or more requirements]}',
    `<   accepts[0] has ${JSON.stringify(accepted)} and maxTimeoutSeconds`,
    `> ${operation.method} ${address}`,
    '> PAYMENT-SIGNATURE: base64 of {"x402Version":2,"accepted":accepts[0],"payload":{"signature":"0x...","authorization":{"from","to","value","validAfter","validBefore","nonce"}}}',
    '< 200',
    '< PAYMENT-RESPONSE: base64 of {"success":true,"transaction":"0x...","network":...,"payer":"0x..."}',
    ...(answer === undefined ? [] : [`< ${JSON.stringify(answer)}`]),
  ]
  return [
    `A complete paid call (${operation.displayRoute}, $${dollars(operation.price)}):`,
    fenced(exchange.join('\n')),
    'The same with @x402/fetch, which does both steps:',
    fenced(buyerProgram(address, operation, context), 'js'),
  ]
}

function fenced(text: string, language = ''): string {
  return `\`\`\`${language}\n${text}\n\`\`\``
}
