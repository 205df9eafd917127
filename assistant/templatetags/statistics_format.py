"""Figures as the statistics page writes them."""

from django import template

from assistant.statistics_admin import dollars, percent, seconds

register = template.Library()
register.filter("seconds", seconds)
register.filter("dollars", dollars)
register.filter("percent", percent)
