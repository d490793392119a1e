/** What to say for a code that the form came back with. */
const PROBLEMS: Readonly<Record<string, string>> = {
  validation_failed:
    'The file could not be read as a ledger, or a number was out of range. Its first row has to name the columns as listed below, every price has to be a number and every time a date. With scripts on, this page names the row.',
  body_too_large: 'The file is larger than 40 MB, or has more than 200,000 rows.',
  media_unsupported: 'The form has to be sent with a file.',
  rate_limited: 'Too many audits at once. Please wait a minute.',
  product_timeout: 'The audit took too long and was given up.',
  not_found: 'There is no such report.',
}

/** The sentence for a code; null for none. Codes are shown only where they are codes. */
export function problem(code: string): string | null {
  if (code === '') return null
  return PROBLEMS[code] ?? 'That did not work. Please try again in a minute.'
}
