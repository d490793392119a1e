/** An MCP server that offers the tools of an x402 service, and pays for their calls within limits. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  type CallToolResult,
  CallToolRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  ListToolsResultSchema,
  ReadResourceRequestSchema,
  type Tool,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { Budget, dollars, type Limits } from '../../gateway/client/budget.ts'
import {
  type Buyer,
  createBuyer,
  NotPaid,
  OutcomeUnknown,
  type Purchase,
  type Step,
} from '../../gateway/client/buyer.ts'
import type { Requirement, Signer } from '../../gateway/client/payment.ts'
import { type OpenPurchase, type PurchaseLog, type ToolCall } from './purchase-log.ts'
import { createToolFetch, resultOf, toolUrl } from './tool-fetch.ts'

export interface BridgeOptions {
  /** A client that is connected to the service. */
  readonly service: Client
  /** The address of its MCP endpoint. */
  readonly url: URL
  /** The wallet that pays. Null: calls that cost something are refused. */
  readonly account: Signer | null
  readonly limits: Limits
  readonly log: PurchaseLog
  /** Gets a line for each purchase. */
  readonly say: (line: string) => void
}

export interface Bridge {
  /** Connect it to the transport of a host. */
  readonly server: Server
  /** Resolves when no purchase is under way. */
  idle(): Promise<void>
}

/** What the service describes for clients that pay themselves. */
const PAYMENT_ARGUMENT = 'payment_signature'
const PAYS = 'Payment is automatic here: call this tool once, without one.'
/** A person is waited for so long. The price of a 402 holds for longer. */
const ASK_MS = 600_000

/** Creates the bridge. Calls that cost more than a limit are asked about, if the host can ask, and else refused. */
export function createBridge(options: BridgeOptions): Bridge {
  const { service } = options
  const instructions = service.getInstructions()
  const server = new Server(service.getServerVersion() ?? { name: options.url.host, version: '1' }, {
    capabilities: { tools: { listChanged: true }, ...passedOn(service) },
    ...(instructions === undefined ? {} : { instructions }),
  })
  const running = new Set<Promise<CallToolResult>>()
  const inUse = new Set<string>()

  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    const list = await service.request({ method: 'tools/list', ...(params ? { params } : {}) }, ListToolsResultSchema)
    return { ...list, tools: list.tools.map(withoutPayment) }
  })
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const call = { url: options.url, tool: params.name, arguments: params.arguments ?? {} }
    const buying = new ToolPurchase(options, server, call, inUse).buy(signal)
    running.add(buying)
    try {
      return await buying
    } finally {
      running.delete(buying)
    }
  })
  const { resources, prompts } = passedOn(service)
  if (resources) {
    server.setRequestHandler(ListResourcesRequestSchema, ({ params }) => service.listResources(params))
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => service.readResource(params))
  }
  if (prompts) {
    server.setRequestHandler(ListPromptsRequestSchema, ({ params }) => service.listPrompts(params))
    server.setRequestHandler(GetPromptRequestSchema, ({ params }) => service.getPrompt(params))
  }
  service.setNotificationHandler(ToolListChangedNotificationSchema, () => server.sendToolListChanged())
  return { server, idle: async () => void (await Promise.allSettled(running)) }
}

/** What the service has besides tools. It is free, so it is passed on. */
function passedOn(service: Client): { readonly resources?: object; readonly prompts?: object } {
  const { resources, prompts } = service.getServerCapabilities() ?? {}
  return { ...(resources ? { resources: {} } : {}), ...(prompts ? { prompts: {} } : {}) }
}

/** A tool without what only a client that pays itself can use. */
function withoutPayment({ inputSchema, description, ...tool }: Tool): Tool {
  const { [PAYMENT_ARGUMENT]: payment, ...properties } = inputSchema.properties ?? {}
  if (payment === undefined) return { ...tool, inputSchema, ...(description === undefined ? {} : { description }) }
  return {
    ...tool,
    description: [description, PAYS].filter(Boolean).join('\n\n'),
    inputSchema: { ...inputSchema, properties },
  }
}

/** One call of a tool, and what is paid for it. */
class ToolPurchase {
  readonly #options: BridgeOptions
  readonly #server: Server
  readonly #call: ToolCall
  /** The purchases whose payments calls of this process are sending. */
  readonly #inUse: Set<string>
  readonly #buyer: Buyer
  /** The purchase that is being paid for; null before the price is known. */
  #id: string | null = null

  constructor(options: BridgeOptions, server: Server, call: ToolCall, inUse: Set<string>) {
    const { service, account } = options
    this.#options = options
    this.#server = server
    this.#call = call
    this.#inUse = inUse
    this.#buyer = createBuyer({
      ...(account ? { account } : {}),
      // The log knows what other processes have spent, and what was spent before this one began.
      limits: {},
      fetch: createToolFetch(service),
      onStep: (step) => this.#onStep(step),
    })
  }

  async buy(signal: AbortSignal): Promise<CallToolResult> {
    const { url, tool, arguments: given } = this.#call
    const earlier = await this.#earlier()
    this.#take(earlier?.id ?? null)
    try {
      const purchase = await this.#buyer.buy(toolUrl(url, tool), {
        method: 'POST',
        body: JSON.stringify(given),
        signal,
        ...(earlier ? { payment: earlier.payment } : {}),
      })
      return this.#conclude(purchase, await resultOf(purchase.response))
    } catch (error) {
      if (!(error instanceof NotPaid || error instanceof OutcomeUnknown)) throw error
      this.#options.say(`${tool}: ${error.message}`)
      return { content: [{ type: 'text', text: error.message }], isError: true }
    } finally {
      this.#take(null)
    }
  }

  /** The payment of an earlier call of the same tool with the same arguments, if it may still be settled. */
  async #earlier(): Promise<OpenPurchase | null> {
    const { log } = this.#options
    const open = log.openFor(this.#call)
    if (!open || this.#inUse.has(open.id)) return null
    if ((await this.#buyer.stateOf(open.payment, this.#call.url)) !== 'released') return open
    log.released(open.id)
    return null
  }

  #take(id: string | null): void {
    if (this.#id !== null) this.#inUse.delete(this.#id)
    if (id !== null) this.#inUse.add(id)
    this.#id = id
  }

  /** Nothing is signed, and nothing that was signed is sent, unless it is written down before. */
  async #onStep(step: Step): Promise<void> {
    try {
      if (step.step === 'offered') await this.#reserve(step.requirement)
      else if (step.step === 'signed') this.#options.log.signed(this.#id as string, step.payment)
    } catch (error) {
      if (error instanceof NotPaid) throw error
      throw new NotPaid(`Not paid: the purchase cannot be written down: ${(error as Error).message}.`)
    }
  }

  /** Throws NotPaid if nobody allows it. */
  async #reserve(requirement: Requirement): Promise<void> {
    const { account, log, limits } = this.#options
    const { amount } = requirement
    if (!account)
      throw new NotPaid(
        `Not paid: the price is ${dollars(amount)} USDC, and there is no wallet. Start the bridge with --key @file.`,
      )
    const id = log.reserve(this.#call, requirement)
    // A payment of an earlier call has ended, and this one takes its place.
    if (this.#id !== null) log.refused(this.#id)
    this.#take(id)
    const { host } = this.#call.url
    const budget = new Budget(limits, Date.now)
    for (const one of log.countedBefore(id)) budget.spend(one.amount, one.host)
    const exceeded = budget.exceeded(amount, host)
    if (exceeded === null) return
    try {
      await this.#ask(amount, exceeded)
    } catch (error) {
      log.released(id)
      throw error
    }
  }

  /** Asks the person at the host. Throws NotPaid if it cannot ask or the answer is no. */
  async #ask(amount: bigint, exceeded: string): Promise<void> {
    const price = `${dollars(amount)} USDC`
    if (!this.#server.getClientCapabilities()?.elicitation)
      throw new NotPaid(
        `Not paid: the price of ${price} is above ${exceeded}. Whoever runs the bridge sets the limits: --max-per-call, --daily and --daily-per-host.`,
      )
    const { tool, url } = this.#call
    const asked = await this.#server
      .elicitInput(
        {
          message: `${tool} at ${url.host} costs ${price}, which is above ${exceeded}.`,
          requestedSchema: {
            type: 'object',
            properties: { pay: { type: 'boolean', title: `Pay ${price}`, default: false } },
            required: ['pay'],
          },
        },
        { timeout: ASK_MS },
      )
      .catch(() => null)
    if (asked?.action !== 'accept' || asked.content?.['pay'] !== true)
      throw new NotPaid(`Not paid: the price of ${price} was not approved.`)
  }

  #conclude({ payment, receipt, charged }: Purchase, result: CallToolResult): CallToolResult {
    const { log, say } = this.#options
    const { tool, url } = this.#call
    if (!payment || this.#id === null) return result
    const id = this.#id
    try {
      if (charged) log.settled(id, receipt?.transaction)
      else if (charged === false) log.refused(id)
    } catch (error) {
      say(`${tool}: the outcome cannot be written down: ${(error as Error).message}`)
    }
    if (!charged) {
      say(`${tool}: refused at ${url.host}, ${charged === false ? 'nothing was charged' : 'perhaps charged'}`)
      return result
    }
    const paid = `Paid ${dollars(BigInt(payment.amount))} USDC to ${url.host}`
    say(`${tool}: ${paid}${receipt?.transaction ? `, ${receipt.transaction}` : ''}`)
    const text = `${paid}; ${dollars(log.spentToday())} USDC today.`
    return { ...result, content: [...result.content, { type: 'text', text }] }
  }
}
