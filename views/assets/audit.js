// Sends the ledger without leaving the page, and shows errors at the fields that they name. The form keeps its input.
// Without this script, the form redirects to the report, or back to the page with an error code.
import { clearProblems, showProblems } from './problems.js'

const form = document.querySelector('form.audit-form')
const button = form.querySelector('button')
const reading = form.querySelector('details.reading')
const SAID = [...reading.querySelectorAll('input')].map(({ name }) => name)

// A report links to the field that states what it assumed. Not every browser opens the fold around a target.
if (SAID.includes(location.hash.slice(1))) reading.open = true

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const label = button.textContent
  button.disabled = true
  button.textContent = 'Auditing…'
  clearProblems(form)
  send()
    .then((report) => location.assign(report), tell)
    .finally(() => {
      button.disabled = false
      button.textContent = label
    })
})

for (const sample of document.querySelectorAll('[data-ledger]')) {
  sample.hidden = false
  sample.addEventListener('click', () => {
    clearProblems(form)
    Promise.all([choose('file', sample.dataset.ledger), choose('bars', 'bars')]).then(() => form.requestSubmit(), tell)
  })
}

/** Chooses a sample for a field of the form, as a visitor chooses a file, and opens the fold around it. */
async function choose(field, name) {
  const answer = await fetch(`/assets/ledgers/${name}.csv`)
  if (!answer.ok) throw new Error('The sample could not be loaded. Please try again.')
  const chosen = new DataTransfer()
  chosen.items.add(new File([await answer.blob()], `${name}.csv`, { type: 'text/csv' }))
  const input = form.elements.namedItem(field)
  input.files = chosen.files
  input.closest('details')?.setAttribute('open', '')
}

/** Returns the URL of the report. Does not send files that are too large: the connection would break before the answer. */
async function send() {
  const maxMegabytes = Number(form.dataset.mostMegabytes)
  for (const { files } of form.querySelectorAll('input[type=file]'))
    if (files[0]?.size > maxMegabytes * 1e6) throw new Error(`${files[0].name} is larger than ${maxMegabytes} MB.`)
  const answer = await fetch(form.action, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: new FormData(form),
  })
  const body = await answer.json()
  if (answer.ok) return body.report_url
  throw Object.assign(new Error(body.message), { problems: body.detail ?? [] })
}

function tell(error) {
  const broken = error instanceof TypeError ? new Error('The connection broke. Please try again.') : error
  showProblems(form, broken, (loc) => form.elements.namedItem(String(loc[1])))
  // A refusal of the file can name the field that would help.
  if (error.problems?.some(({ msg }) => SAID.some((name) => msg.split(/\W+/).includes(name)))) reading.open = true
}
