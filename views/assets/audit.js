// Sends the ledger without leaving the page, and shows errors at the fields that they name. The form keeps its input.
// Without this script, the form redirects to the report, or back to the page with an error code.
const form = document.querySelector('form.audit-form')
const button = form.querySelector('button')
const alert = form.querySelector('.mistakes')
const reading = form.querySelector('details.reading')
const SAID = [...reading.querySelectorAll('input')].map(({ name }) => name)

// A report links to the field that states what it assumed. Not every browser opens the fold around a target.
if (SAID.includes(location.hash.slice(1))) reading.open = true

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const label = button.textContent
  button.disabled = true
  button.textContent = 'Auditing…'
  clearProblems()
  send()
    .then((report) => location.assign(report), tell)
    .finally(() => {
      button.disabled = false
      button.textContent = label
    })
})

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

/** Shows each problem at the field that it names, otherwise above the button, and moves the focus to the first. */
function tell(error) {
  const problems = error.problems ?? []
  const elsewhere = problems.filter(({ loc, msg }) => !tellAtField(loc[1], msg))
  const first = form.querySelector('[aria-invalid]')
  if (elsewhere.length > 0 || !first) {
    const texts = elsewhere.map(({ loc, msg }) => [loc.slice(1).join(', '), msg].filter(Boolean).join(': '))
    const broken = error instanceof TypeError ? 'The connection broke. Please try again.' : error.message
    alert.textContent = texts.join('\n') || broken
    alert.hidden = false
  }
  // A refusal of the file can name the field that would help.
  if (problems.some(({ msg }) => SAID.some((name) => msg.split(/\W+/).includes(name)))) reading.open = true
  ;(first ?? alert).focus()
}

/** Returns false if the form has no such field. */
function tellAtField(name, msg) {
  const field = form.elements.namedItem(String(name))
  if (!field) return false
  field.closest('details')?.setAttribute('open', '')
  field.setAttribute('aria-invalid', 'true')
  const known = document.getElementById(`${name}-problem`)
  const problem = known ?? document.createElement('p')
  problem.textContent = [problem.textContent, msg].filter(Boolean).join('\n')
  if (known) return true
  problem.id = `${name}-problem`
  problem.className = 'note mistakes'
  problem.setAttribute('role', 'alert')
  field.closest('.field').append(problem)
  return true
}

function clearProblems() {
  alert.hidden = true
  for (const problem of form.querySelectorAll('.field > .mistakes')) problem.remove()
  for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid')
}
