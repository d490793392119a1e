/** The questions about a new product, and the answers that a command line, a terminal or a pipe gives. */
import { createInterface } from 'node:readline'
import { parsePrice } from '../../gateway/catalog/product-drafts.ts'
import type { NewProduct } from './texts.ts'
import { nameIn } from './write-product.ts'

interface Question {
  readonly name: keyof NewProduct
  readonly question: string
  /** Describes what is wrong with an answer. Null if it is valid. */
  readonly problemOf: (answer: string) => string | null
  /** Returns the default for an empty answer. Without it, an answer is required. */
  readonly otherwise?: (given: Partial<NewProduct>) => string
}

const filled = (answer: string): string | null => (answer === '' ? 'Must not be empty.' : null)

const QUESTIONS: readonly Question[] = [
  {
    name: 'product',
    question: 'Name, in lower case with hyphens (gold-price)',
    problemOf: (answer) =>
      /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(answer)
        ? null
        : `${answer === '' ? 'A name is required' : `"${answer}" is not a valid name`}: write lower case letters, digits and hyphens, ` +
          `such as ${nameIn(answer)}.`,
  },
  {
    name: 'title',
    question: 'Title for people',
    problemOf: filled,
    otherwise: ({ product = '' }) => product.charAt(0).toUpperCase() + product.slice(1).replaceAll('-', ' '),
  },
  {
    name: 'summary',
    question: 'What one call returns, in one sentence',
    problemOf: filled,
    otherwise: ({ title = '' }) => `${title}, newest first.`,
  },
  {
    name: 'price',
    question: 'Price in US dollars, or free',
    problemOf: (answer) =>
      answer === 'free' || parsePrice(answer) !== null
        ? null
        : `"${answer}" is not a valid price: write "free", or dollars above zero with at most six decimals, such as 0.005.`,
    otherwise: () => '0.005',
  },
  {
    name: 'upstream',
    question: 'Address of the upstream (http://gold.internal/{day}), or nothing to write a plugin',
    problemOf: (answer) =>
      answer === '' || /^https?:\/\/[^/{}@\s]+(\/\S*)?$/.test(answer)
        ? null
        : `"${answer}" is not a valid address: write http:// or https://, a host and a path. Parameters in braces may be in the path only.`,
    otherwise: () => '',
  },
]

/** Answers by question, as they were written. */
export type Given = Partial<Record<keyof NewProduct, string>>

/**
 * Asks for what is not given until each answer is valid, or takes the defaults if nobody is asked. Throws an error that lists
 * every problem.
 */
export async function answers(flags: Given, isAsking: boolean): Promise<NewProduct> {
  const given = { ...flags }
  const { stdin: input, stdout: output } = process
  const reader = isAsking ? createInterface({ input, output }) : null
  const lines = reader?.[Symbol.asyncIterator]()
  const ask = async (text: string): Promise<string | null> => {
    reader?.setPrompt(text)
    reader?.prompt()
    const line = await lines?.next()
    return line === undefined || line.done ? null : line.value.trim()
  }
  const problems: string[] = []
  for (const { name, question, problemOf, otherwise } of QUESTIONS) {
    const fallback = otherwise?.(given)
    const orDefault = (given: string): string => (given === '' ? (fallback ?? '') : given)
    let answer = given[name]?.trim()
    while (answer === undefined || (isAsking && input.isTTY && problemOf(orDefault(answer)) !== null)) {
      if (answer !== undefined) output.write(`${problemOf(orDefault(answer))}\n`)
      const line = await ask(`${question}${fallback ? ` [${fallback}]` : ''}: `)
      answer = line ?? ''
      if (line === null) break
    }
    given[name] = orDefault(answer)
    const problem = problemOf(given[name])
    if (problem !== null) problems.push(`--${name}: ${problem}`)
  }
  reader?.close()
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return given as NewProduct
}
