# Moves @amount from the account @from to the account @to, and returns what is left on @from.
# Both accounts lie in one bucket, as accounts/ann and accounts/bob do. An account holds a whole number as text.
# Fails, and changes nothing, when an account is missing or would be overdrawn.
if @amount <= 0 then
  throw "the amount must be above 0"
end
if @from = @to then
  throw "the two accounts are the same one"
end

let source = get @from
if not found then
  throw concat("there is no account ", @from)
end
let target = get @to
if not found then
  throw concat("there is no account ", @to)
end

let rest = to_int(source) - @amount
if rest < 0 then
  throw concat(@from, " has ", source, ", which is less than ", to_str(@amount))
end

set @from rest
set @to to_int(target) + @amount
return rest
