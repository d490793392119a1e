/** MCP prompts: one for each product that has tools, which a person picks to ask it something. */
import type { GetPromptResult, Prompt } from '@modelcontextprotocol/sdk/types.js'
import type { Catalog } from '../plugin/catalog.ts'
import type { Tool } from './tools.ts'

/** A prompt, and what it says to a model. */
export interface ProductPrompt {
  /** The entry of prompts/list. */
  readonly definition: Prompt
  /** The result of prompts/get. */
  messages(question?: string): GetPromptResult
}

/** Returns the prompts of a catalog by name. `tools` are those that its endpoint lists. */
export function createPrompts(
  { products }: Catalog,
  tools: ReadonlyMap<string, Tool>,
): ReadonlyMap<string, ProductPrompt> {
  return new Map(
    products.flatMap(({ id, title, summary, whenToUse }): [string, ProductPrompt][] => {
      const own = [...tools].filter(([, { operation }]) => operation.product === id)
      if (own.length === 0) return []
      const offers = own.map(([name, { operation }]) => `- ${name} (${costOf(operation)}): ${operation.summary}`)
      const text = [
        [summary, whenToUse].filter(Boolean).join(' '),
        `Use these tools, and say what a call costs before you pay:\n${offers.join('\n')}`,
      ].join('\n\n')
      const definition = { name: id, title, description: summary, arguments: [QUESTION] }
      return [[id, { definition, messages: (question) => said(summary, question ? `${question}\n\n${text}` : text) }]]
    }),
  )
}

const QUESTION = { name: 'question', description: 'What you want to know or have done.', required: false }

const costOf = ({ price, priceText }: Tool['operation']): string => (price === null ? 'free' : `$${priceText}`)

const said = (description: string, text: string): GetPromptResult => ({
  description,
  messages: [{ role: 'user', content: { type: 'text', text } }],
})
