"""Frequent words of two languages, most frequent first: enough for `text/word_breaks.py` to read simple sentences."""

from __future__ import annotations

ENGLISH = tuple(
    """the be to of and a in that have I it for not on with he as you do at this but his by from they we say her she or
    an will my one all would there their what so up out if about who get which go me when make can like time no just him
    know take people into year your good some could them see other than then now look only come its over think also back
    after use two how our work first well way even new want because any these give day most us is are was were been has
    had did don't can't won't isn't I'm it's read write word words language English French understand understood under
    stand stood speak spoke hear here where why yes may must shall should might very much many more less too still again
    man woman child world life hand part place case week company system program question government number night point
    home water room mother area money story fact month lot right study book eye job business issue side kind head house
    service friend father power hour game line end member law car city community name president team minute idea kid
    body information nothing ago lead social whether watch together follow around parent stop face anything create
    public already""".split()  # noqa: SIM905 - words read better in rows
)
FRENCH = tuple(
    """de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec son ont aux
    d'un cette d'une été mais fait je ou nous vous tout on y si elle leur sans deux même être comme ils ses entre bien
    après lui aussi peut tous dont faire ces moi me mon ma mes ta te ton tu sa où autre avant très là non oui rien quand
    puis ici ceci cela ça pouvez pouvons peuvent pouvoir lire lis lit lisez écrire parler parle parlez parlons parlent
    français anglais langue mot mots comprendre comprenez voir vu dire dit aller va vers chez homme femme enfant monde
    vie main jour année temps fois chose pays ville maison eau soir matin nuit tête pied œil yeux ami amie père mère
    frère sœur grand petit bon bonne beau belle nouveau vieux jeune premier dernier seul autres toujours jamais encore
    déjà peu beaucoup trop assez moins mieux mal alors donc car parce depuis pendant contre sous ni soi lu pou nez par
    cours pas paris""".split()  # noqa: SIM905 - words read better in rows
)
