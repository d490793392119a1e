// Shows what is wrong with a form at the fields that an error names. The form keeps its input.

/**
 * Shows each problem ({loc, msg}) at the field that `fieldOf` finds for its place. The others, or the error itself if it
 * names no field, are shown in the note of the form. The focus moves to the first.
 */
export function showProblems(form, error, fieldOf) {
  const elsewhere = (error.problems ?? []).filter(({ loc, msg }) => !tellAtField(fieldOf(loc), msg))
  const first = form.querySelector('[aria-invalid]')
  const texts = elsewhere.map(({ loc, msg }) => [loc.slice(1).join(', '), msg].filter(Boolean).join(': '))
  const note = elsewhere.length > 0 || !first ? addNote(form, texts.join('\n') || error.message) : null
  ;(first ?? note).focus()
}

function addNote(form, text) {
  const note = document.createElement('p')
  note.className = 'note mistakes'
  note.tabIndex = -1
  note.textContent = text
  note.setAttribute('role', 'alert')
  form.prepend(note)
  return note
}

function tellAtField(field, msg) {
  if (!field) return false
  field.closest('details')?.setAttribute('open', '')
  field.setAttribute('aria-invalid', 'true')
  const known = document.getElementById(`${field.id}-problem`)
  const problem = known ?? document.createElement('p')
  problem.textContent = [problem.textContent, msg].filter(Boolean).join('\n')
  if (known) return true
  problem.id = `${field.id}-problem`
  problem.className = 'note mistakes'
  problem.setAttribute('role', 'alert')
  field.closest('.field').append(problem)
  return true
}

export function clearProblems(form) {
  form.querySelector('.mistakes[tabindex]')?.remove()
  for (const problem of form.querySelectorAll('.field > .mistakes')) problem.remove()
  for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid')
}
